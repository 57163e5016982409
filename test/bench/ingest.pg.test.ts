import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { withMirrorDatabase } from '../../bench/frame/server.ts';
import { NODE_FLAGS } from '../../bench/ingest/build.ts';
import { onCopy, standOn, urlOf } from '../../bench/ingest/databases.ts';
import { writeManifest } from '../../bench/ingest/manifest.ts';
import type { Ended } from '../../bench/ingest/mirror-process.ts';
import { byMirror } from '../../bench/ingest/ours.ts';
import { byPsql, byUpsert, floor, hasPsql, type Manifest } from '../../bench/ingest/peers.ts';
import { inRounds } from '../../bench/ingest/rounds.ts';
import { startUpstream } from '../../bench/ingest/upstream.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { baseline, line } from '../store/manifest.ts';

/*
 * What a re-baseline costs the database and the process, on its own server, because WAL is counted per server.
 * Full page writes are off, so that WAL measures the rows alone, and so is autovacuum, so that dead rows remain to
 * be counted.
 */

type Server = Parameters<Parameters<typeof withMirrorDatabase>[0]>[0];
const SETTINGS = { wal_level: 'replica', fsync: 'off', full_page_writes: 'off', autovacuum: 'off' };
const PROGRAM = new URL('../../bench/ingest/mirror-process.ts', import.meta.url).pathname;
const CHANGED = 200;
const SIZES = [10_000, 20_000] as const;

let server: Server;
let ended: Promise<unknown>;
let release = (): void => {};
beforeAll(async () => {
  const open = Promise.withResolvers<Server>();
  ended = withMirrorDatabase(
    (mirror) => {
      open.resolve(mirror);
      return new Promise<void>((resolve) => {
        release = resolve;
      });
    },
    { settings: SETTINGS },
  ).catch(open.reject);
  server = await open.promise;
  await server.sql.unsafe('create database fresh');
  await migrateDatabase(urlOf(server.url, 'fresh'));
});
afterAll(async () => {
  release();
  await ended;
});

async function standing(sql: Sql, name: string, split: string): Promise<void> {
  await sql.unsafe(`create database ${name} template fresh strategy file_copy`);
  await standOn(urlOf(server.url, name), split);
}

/** Returns `skus` lines, `changed` of them, spread evenly, with another hash than before. */
function linesOf(skus: number, changed = 0) {
  const moved = (n: number) => changed > 0 && n % (skus / changed) === 1;
  return Array.from({ length: skus }, (_, n) =>
    line(`SKU-${String(n).padStart(6, '0')}`, moved(n) ? { hash: 'h2' } : {}),
  );
}

test('WAL and dead rows of a re-baseline depend on what changed, not on the size of the catalog', async () => {
  const found = [];
  for (const skus of SIZES) {
    const split = join(server.folder, `${skus}.tsv`);
    const texts = linesOf(skus).map((l) => [l.sku, l.sizes, l.hash, l.priceSource, l.updatedAt].join('\t'));
    writeFileSync(split, `${texts.join('\n')}\n`);
    await standing(server.sql, `standing_${skus}`, split);
    const run = async (changed: number) => {
      const { result, ...written } = await onCopy(server.sql, server.url, `standing_${skus}`, (url) =>
        baseline(url, linesOf(skus, changed), { token: { generatedAt: new Date() } }),
      );
      expect(result.applied).toMatchObject({ changed, marked: changed, absent: 0, added: 0 });
      return written;
    };
    found.push({ same: await run(0), changed: await run(CHANGED), twice: await run(2 * CHANGED) });
  }
  const [small, large] = found as [(typeof found)[0], (typeof found)[0]];
  for (const { same, changed, twice } of found) {
    expect(same.walBytes).toBeLessThan(300_000);
    expect(same.deadTuples).toBe(0);
    // One in catalog.skus and one in the ledger.
    expect(changed.deadTuples).toBe(2 * CHANGED);
    expect(twice.deadTuples).toBe(4 * CHANGED);
    expect(changed.walBytes - same.walBytes).toBeLessThan(CHANGED * 2000);
  }
  expect(large.same.walBytes).toBeLessThan(small.same.walBytes + 50_000);
  expect(large.changed.walBytes).toBeLessThan(1.3 * small.changed.walBytes);
});

test('all ways that the bench compares give the same result', async () => {
  const upstream = await startUpstream();
  const write = async (edition: 'former' | 'next') => {
    const files = {
      gzip: join(server.folder, `${edition}.gz`),
      split: join(server.folder, `${edition}.tsv`),
    };
    const lines = await writeManifest(edition, 2000, files);
    return { snapshotId: edition, generatedAt: new Date(), lines, ...files };
  };
  try {
    const former = await write('former');
    const next = await write('next');
    await standing(server.sql, 'ways', former.split);
    const mirror = byMirror(PROGRAM, upstream);
    const ways: Record<string, (url: string, manifest: Manifest) => Promise<unknown>> = {
      mirror,
      floor,
      byUpsert,
      ...((await hasPsql()) ? { byPsql } : {}),
    };
    const ran = Object.entries(ways).flatMap(([name, way]) =>
      [former, next].map((manifest) => ({
        name: `${manifest.snapshotId} ${name}`,
        run: async () => ({
          ...(await onCopy(server.sql, server.url, 'ways', (url) => way(url, manifest))),
          ms: 0,
        }),
      })),
    );
    // Throws if two of them differ.
    await inRounds(Object.fromEntries(ran.map(({ name, run }) => [name, run])), 1, () => {});
  } finally {
    upstream.close();
  }
});

test('the memory of a re-baseline does not grow with the catalog', async () => {
  const upstream = await startUpstream();
  const peakMb = async (skus: number) => {
    const files = { gzip: join(server.folder, `${skus}.gz`), split: join(server.folder, `m${skus}.tsv`) };
    const lines = await writeManifest('former', skus, files);
    await standing(server.sql, `m${skus}`, files.split);
    upstream.offer({ snapshotId: 'next', generatedAt: new Date(), lines, gzip: files.gzip });
    const child = fork(PROGRAM, [urlOf(server.url, `m${skus}`), upstream.url], { execArgv: NODE_FLAGS });
    const died = once(child, 'exit').then(([code]): never => {
      throw new Error(`the process ended with ${String(code)}`);
    });
    died.catch(() => {});
    const [message] = (await Promise.race([once(child, 'message'), died])) as [Ended];
    await died.catch(() => {});
    return message.rssMb;
  };
  try {
    const few = await peakMb(10_000);
    // The lines alone take 34 MB, and more as objects.
    expect(await peakMb(200_000)).toBeLessThan(1.25 * few);
  } finally {
    upstream.close();
  }
});
