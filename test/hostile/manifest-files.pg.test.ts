import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { BROKEN_FILES } from './broken-files.ts';
import { BROKEN_LINES } from './broken-lines.ts';
import { goodHead } from './manifest-case.ts';
import { refuseAll } from './manifest-corpus.ts';
import { useHostileMirror } from './mirror.ts';
import { goodManifest, NEXT, sendBytes, sendFlood, textOf } from './upstream.ts';

const HEAP_MIB = 96;
const CEILING_MIB = 320;
const CASES = [...BROKEN_FILES, ...BROKEN_LINES];

const mirror = useHostileMirror(HEAP_MIB);

refuseAll(mirror, CASES, CEILING_MIB);

test('there are at least two hundred malformed files', () => {
  expect(CASES.length).toBeGreaterThanOrEqual(200);
});

test('the same snapshot with an intact file is applied, which proves that the corpus had something to change', async () => {
  const before = await mirror.digest();
  const { file } = goodManifest(NEXT);
  const replies = {
    manifest: goodHead(),
    file: (response: Parameters<typeof sendBytes>[0]) => sendBytes(response, file),
  };
  const ended = await mirror.run('manifest', replies);
  expect(ended).toMatchObject({ kind: 'done', moved: { 'syncs_total manifest ok': 1 } });
  const after = await mirror.digest();
  for (const part of ['catalog.skus', 'catalog_internal.due', 'token'])
    expect(after[part]).not.toBe(before[part]);
  await mirror.restore();
  expect(await mirror.digest()).toEqual(before);
});

test('a file with more lines than announced is not read to its end', async () => {
  const bytes = 64 * 1024 * 1024;
  let socket: Socket | null = null;
  const ended = await mirror.run('manifest', {
    manifest: goodHead(),
    file(response) {
      ({ socket } = response);
      sendFlood(response, textOf(NEXT.slice(0, 1)), bytes, 0);
    },
  });
  expect(ended).toMatchObject({ kind: 'failed', because: 'line-count-mismatch' });
  expect((socket as Socket | null)?.bytesWritten).toBeLessThan(bytes / 2);
});
