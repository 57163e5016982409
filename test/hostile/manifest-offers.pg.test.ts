import { expect, test } from 'vitest';
import { BROKEN_OFFERS } from './broken-offers.ts';
import { goodHead } from './manifest-case.ts';
import { refuseAll } from './manifest-corpus.ts';
import { useHostileMirror } from './mirror.ts';
import { goodManifest, NEXT, sendBytes } from './upstream.ts';

/** An answer of the API is read as a whole, up to 64 MiB: its bytes, its text, and the parsed JSON. */
const HEAP_MIB = 384;
const CEILING_MIB = 640;

const mirror = useHostileMirror(HEAP_MIB);

refuseAll(mirror, BROKEN_OFFERS, CEILING_MIB);

test.each([
  { live_priced_sku_count: 9e15 },
  { live_priced_sku_count: 2_147_483_648 },
  { live_priced_sku_count: 'all' },
  { generated_at: 8.64e15 },
  { generated_at: '+275760-09-13T00:00:00.000Z' },
  { generated_at: 'soon' },
  { generated_at: 0 },
  { generated_at: -1 },
  { generated_at: '0001-01-01T00:00:00Z' },
  { generated_at: [] },
  { url_expires_at: 'never' },
  { url_expires_at: -8.64e15 },
])('%j does no harm if the file is intact', async (changes) => {
  const { file } = goodManifest(NEXT);
  const ended = await mirror.run('manifest', {
    manifest: goodHead(NEXT, changes),
    file: (response) => sendBytes(response, file),
  });
  const [row] = await mirror.sql`select snapshot_id from catalog_internal.sync`;
  await mirror.restore();
  expect(ended).toMatchObject({ kind: 'done', error: null });
  expect(row).toEqual({ snapshot_id: 'next' });
});

const TOMORROW = new Date(Date.now() + 23 * 3_600_000).toISOString();

test.each([TOMORROW, '2099-01-01T00:00:00.000Z', 8.64e15, '+275760-09-13T00:00:00.000Z'])(
  'a snapshot generated at %s, in the future, does not block the next one',
  async (generated_at) => {
    const { file } = goodManifest(NEXT);
    const offered = (changes: Record<string, unknown>) =>
      mirror.run('manifest', {
        manifest: goodHead(NEXT, changes),
        file: (response) => sendBytes(response, file),
      });
    const first = await offered({ generated_at });
    const second = await offered({ snapshot_id: 'the one after' });
    const [row] = await mirror.sql`select snapshot_id from catalog_internal.sync`;
    await mirror.restore();
    expect([first.kind, second.kind, second.because]).toEqual(['done', 'done', null]);
    expect(row).toEqual({ snapshot_id: 'the one after' });
  },
);
