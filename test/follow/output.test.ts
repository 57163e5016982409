import { appendFileSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { cut } from '../../src/follow/batch.ts';
import { createFileOutput, type OutputFile, outputTo } from '../../src/follow/output.ts';
import { changeAt } from './changes.ts';

const [batch] = cut(
  { changes: [changeAt(1n, { sku: 'รองเท้า' }), changeAt(2n)], readTo: 2n, copiedTo: null },
  { changes: 10, bytes: 10_000 },
);
const TEXT = `${batch!.lines.join('\n')}\n`;
const never = new AbortController().signal;

/** A file that accepts few bytes at a time, and a limited number in total. */
class SmallFile implements OutputFile {
  bytes = Buffer.alloc(0);
  room: number;
  readonly atOnce: number;

  constructor(atOnce: number, room = Infinity) {
    this.atOnce = atOnce;
    this.room = room;
  }

  write(bytes: Uint8Array): number {
    if (this.room === 0) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    const taken = bytes.subarray(0, Math.min(this.atOnce, this.room));
    this.bytes = Buffer.concat([this.bytes, taken]);
    this.room -= taken.length;
    return taken.length;
  }

  size = () => this.bytes.length;
  isCutOff = () => this.bytes.length > 0 && this.bytes.at(-1) !== 0x0a;

  truncate(size: number): void {
    this.bytes = this.bytes.subarray(0, size);
  }

  get text() {
    return this.bytes.toString('utf8');
  }
}

test.each([1, 7, 1000])('a file that accepts %i bytes at a time receives a whole batch', async (atOnce) => {
  const file = new SmallFile(atOnce);
  expect(await createFileOutput(file).deliver(batch!, never)).toMatchObject({ outcome: 'delivered' });
  expect(file.text).toBe(TEXT);
});

test('a batch of which a full disk took only a part is not delivered; its rest follows once there is room', async () => {
  const file = new SmallFile(100, 50);
  const output = createFileOutput(file);
  expect(await output.deliver(batch!, never)).toMatchObject({ outcome: 'failed', said: 'ENOSPC' });
  file.room = 20;
  expect(await output.deliver(batch!, never)).toMatchObject({ outcome: 'failed', said: 'ENOSPC' });
  file.room = Infinity;
  expect(await output.deliver(batch!, never)).toMatchObject({ outcome: 'delivered' });
  expect(file.text).toBe(TEXT);
  expect(await output.deliver(batch!, never)).toMatchObject({ outcome: 'delivered' });
  await output.close();
  expect(file.text).toBe(TEXT + TEXT);
});

test('a batch that is cut differently when it is retried starts a line of its own', async () => {
  const file = new SmallFile(100, 50);
  const output = createFileOutput(file);
  await output.deliver(batch!, never);
  file.room = Infinity;
  const [first = ''] = batch!.lines;
  expect(await output.deliver({ ...batch!, lines: [first] }, never)).toMatchObject({ outcome: 'delivered' });
  expect(file.text.split('\n').slice(1)).toEqual([first, '']);
});

test('a batch that is cut differently several times while little or nothing is written starts a line of its own', async () => {
  const file = new SmallFile(1000);
  const output = createFileOutput(file);
  await output.deliver(batch!, never);
  const [first = '', second = ''] = batch!.lines;
  const tries = [
    { lines: batch!.lines, room: 10, left: TEXT.slice(0, 10) },
    { lines: [second], room: 0, left: TEXT.slice(0, 10) },
    { lines: [first], room: 1, left: `${TEXT.slice(0, 10)}\n` },
    { lines: [second], room: Infinity, left: `${TEXT.slice(0, 10)}\n${second}\n` },
  ];
  for (const { lines, room, left } of tries) {
    file.room = room;
    await output.deliver({ ...batch!, lines }, never);
    expect(file.text).toBe(TEXT + left);
  }
});

test('an incomplete line of a process that was killed on a full disk spoils no line of the next process', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'output-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'changes.ndjson');
  const follows = async () => {
    // Opened like a shell's `>> file`, which cannot be read from.
    const fd = openSync(path, 'a');
    const stdout = Object.assign(new PassThrough(), { fd });
    expect(await outputTo(stdout).deliver(batch!, never)).toMatchObject({ outcome: 'delivered' });
    closeSync(fd);
  };
  await follows();
  appendFileSync(path, '{"position":3,"ki');
  await follows();
  await follows();
  expect(readFileSync(path, 'utf8')).toBe(`${TEXT}{"position":3,"ki\n${TEXT}${TEXT}`);
});

test('a file that accepts no bytes without an error is not written to forever', async () => {
  const file = new SmallFile(0);
  expect(await createFileOutput(file).deliver(batch!, never)).toMatchObject({ outcome: 'failed' });
});

test('closing on a full disk removes the partial batch, unless somebody else has written after it', async () => {
  const file = new SmallFile(100);
  const output = createFileOutput(file);
  await output.deliver(batch!, never);
  file.room = 50;
  await output.deliver(batch!, never);
  await output.close();
  expect(file.text).toBe(TEXT);
  const shared = new SmallFile(100, 50);
  const other = createFileOutput(shared);
  await other.deliver(batch!, never);
  shared.bytes = Buffer.concat([shared.bytes, Buffer.from('more')]);
  await other.close();
  expect(shared.bytes.length).toBe(54);
});
