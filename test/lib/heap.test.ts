import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { SEMI_SPACE } from '../../src/launch.ts';
import { heapKeeper } from '../../src/sync/heap.ts';

const MB = 1024 ** 2;

test('collects whenever memory has grown by 16 MB since its last minimum', () => {
  let bytes = 40 * MB;
  const collected: number[] = [];
  const collect = () => {
    collected.push(bytes / MB);
    bytes = 35 * MB;
  };
  const keep = heapKeeper(() => bytes, collect);
  for (const mb of [50, 30, 45, 46, 40, 50, 51]) {
    bytes = mb * MB;
    keep();
  }
  expect(collected).toEqual([46, 51]);
});

/**
 * Streams 75 MB of buffers, 32 alive at a time, each long enough to outlive two young collections. Prints the peak
 * number of bytes in buffers.
 */
const STREAM = `
  const { heapKeeper } = await import(process.argv[1]);
  const keep = heapKeeper();
  const alive = [];
  let most = 0;
  for (let n = 0; n < 1200; n += 1) {
    alive[n % 32] = Buffer.allocUnsafeSlow(65536);
    for (let line = 0; line < 3000; line += 1) alive[32] = { text: 'x'.repeat(40) + line, of: [n, line] };
    keep();
    if (n % 16 === 0) most = Math.max(most, process.memoryUsage().arrayBuffers);
  }
  console.log(most);`;

test('buffers of a stream are freed before they add up', async () => {
  const heap = new URL('../../src/sync/heap.ts', import.meta.url).href;
  // How much V8's own threads collect meanwhile depends on the load of the processors, so they are switched off.
  // By itself V8 lets the peak reach 67 MB, or collects earlier on a slow machine.
  const args = [SEMI_SPACE, '--single-threaded-gc', '--input-type=module', '--eval', STREAM, heap];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(Number(stdout) / MB).toBeLessThan(28);
}, 60_000);
