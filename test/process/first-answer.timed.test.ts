import { expect, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { codeBlocks } from '../docs/markdown.ts';
import { eventually } from '../support/eventually.ts';
import { runProgram, startProgram, temporaryFolder } from '../support/process.ts';

/** As for a newcomer: from the start of the demo to the first row of the README's first query. */
const AIM_MS = 10_000;
/**
 * The limit on a slower or busier machine: this many starts of the program that only prints its help. Usually
 * about seven.
 */
const AIM_STARTS = 12;

/** Returns the median of three starts, in milliseconds. */
async function start(): Promise<number> {
  const times: number[] = [];
  for (let turn = 0; turn < 3; turn += 1) {
    const from = performance.now();
    expect((await runProgram(['--help'])).code).toBe(0);
    times.push(performance.now() - from);
  }
  return times.toSorted((a, b) => a - b)[1] ?? 0;
}

test('the first query of the README returns a row within ten seconds of the start of the demo', async () => {
  const [query] = codeBlocks('sql').filter(({ page }) => page === 'README.md');
  const before = await start();
  const startedAt = performance.now();
  const passed = () => Math.round(performance.now() - startedAt);
  await using demo = startProgram(['demo'], { DATA_DIR: await temporaryFolder() });
  const url = await eventually(() => /psql '(postgres:[^']+)'/.exec(demo.stdout.join('\n'))?.[1] ?? false, {
    what: 'the line for psql',
  });
  const addressesMs = passed();
  const sql = connect(String(url), { max: 1 });
  await eventually(async () => (await sql.unsafe(query?.text ?? '')).length > 0, {
    what: 'a row',
    every: 100,
  });
  const rowMs = passed();
  await sql.end({ timeout: 1 });
  await demo.end('SIGTERM');
  const startMs = Math.max(before, await start());
  console.log(
    `addresses after ${addressesMs} ms, the first row after ${rowMs} ms, a start ${Math.round(startMs)} ms`,
  );
  expect(rowMs).toBeLessThan(Math.max(AIM_MS, AIM_STARTS * startMs));
});
