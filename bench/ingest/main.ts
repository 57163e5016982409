import { join } from 'node:path';
import type { Sql } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { timed } from '../frame/measure.ts';
import { sizes } from '../frame/options.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report, type Row } from '../frame/table.ts';
import { buildMirrorProcess } from './build.ts';
import { onCopy, standOn, urlOf } from './databases.ts';
import { type Edition, writeManifest } from './manifest.ts';
import { byMirror } from './ours.ts';
import { byPsql, byUpsert, floor, hasPsql, type Manifest } from './peers.ts';
import { inRounds, type Result, type Run } from './rounds.ts';
import { startUpstream, type Upstream } from './upstream.ts';

/*
 * npm run bench:ingest [-- --skus 1000000 --rounds 3 --json FILE] A manifest into the mirror: a fill, a re-baseline
 * with changes (manifest.ts says which), and one in which nothing changed. The mirror's own way runs as the daemon
 * does it, in a process of its own; beside it what a user would do instead, and what the machine allows at best.
 * Every run starts from the same pages.
 */

const { skus, rounds, json } = sizes({ skus: 1_000_000, rounds: 3 });
const few = Math.min(100_000, skus / 10);
const psql = await hasPsql();
if (!psql) process.stdout.write('psql is not installed: the ways through it are left out\n');

/** Durable and logging as a server of one's own does; what is left behind stays to be counted. */
const SETTINGS = {
  wal_level: 'replica',
  max_wal_size: '8GB',
  checkpoint_timeout: '1h',
  autovacuum: 'off',
  hot_standby: 'off',
};

interface Server {
  readonly url: string;
  readonly sql: Sql;
  readonly folder: string;
}

type Way = (url: string, manifest: Manifest) => Promise<{ readonly ms: number; readonly rssMb?: number }>;

const timedBy =
  (way: (url: string, manifest: Manifest) => Promise<void>): Way =>
  async (url, manifest) => ({ ms: await timed(() => way(url, manifest)) });

/** Makes the two editions of a catalog of `of` SKUs, and a database that stands on the former. */
async function prepare(server: Server, standing: string, of: number) {
  const write = async (edition: Edition): Promise<Manifest> => {
    const path = join(server.folder, `${edition}-${of}`);
    const files = { gzip: `${path}.gz`, split: `${path}.tsv` };
    const lines = await writeManifest(edition, of, files);
    return { snapshotId: edition, generatedAt: new Date(), lines, ...files };
  };
  const manifests = { former: await write('former'), next: await write('next') };
  await server.sql.unsafe(`create database ${standing} template fresh strategy file_copy`);
  await standOn(urlOf(server.url, standing), manifests.former.split);
  return manifests;
}

async function measure(server: Server, upstream: Upstream): Promise<(way: string) => Result> {
  await server.sql.unsafe('create database fresh');
  await migrateDatabase(urlOf(server.url, 'fresh'));
  const { former, next } = await prepare(server, 'standing', skus);
  const { next: fewNext } = await prepare(server, 'standing_few', few);
  const mirror = byMirror(buildMirrorProcess(server.folder), upstream);

  const on = (template: string, way: Way, manifest: Manifest) => async (): Promise<Run> => {
    const { result: run, ...written } = await onCopy(server.sql, server.url, template, (url) =>
      way(url, manifest),
    );
    return { ...written, ...run };
  };
  const job = (name: string, template: string, manifest: Manifest) => ({
    [`${name} ours`]: on(template, mirror, manifest),
    ...(psql ? { [`${name} psql`]: on(template, timedBy(byPsql), manifest) } : {}),
    [`${name} floor`]: on(template, timedBy(floor), manifest),
  });
  return await inRounds(
    {
      'few ours': on('standing_few', mirror, fewNext),
      ...job('fill', 'fresh', former),
      ...job('changed', 'standing', next),
      'changed upsert': on('standing', timedBy(byUpsert), next),
      ...job('same', 'standing', former),
      'same upsert': on('standing', timedBy(byUpsert), former),
    },
    rounds,
  );
}

const result = await withMirrorDatabase(
  async (server) => {
    const upstream = await startUpstream();
    try {
      return await measure(server, upstream);
    } finally {
      upstream.close();
    }
  },
  { settings: SETTINGS },
);

const PSQL = 'gzip -dc | psql \\copy as jsonb, merged in SQL';
const FLOOR = 'floor: lines split already → COPY → merge';
const UPSERT = 'ON CONFLICT … WHERE';
const of = `${skus.toLocaleString('en-US')} SKUs`;

/** A row in which `ours` is held against a peer by one of their figures. */
function against(
  work: string,
  what: string,
  unit: string,
  ways: readonly [string, string],
  value: (r: Result) => number,
  limit?: number,
): Row {
  const [ours, theirs] = ways.map((way) => value(result(way))) as [number, number];
  return {
    work,
    ours,
    unit,
    against: { what, value: theirs },
    ...(limit === undefined ? {} : { reach: { is: '≤', limit } }),
  };
}

const jobs = [
  ['fill', `fill, ${of}`, undefined, undefined],
  ['changed', `re-baseline, ${of}`, 0.9, 2.1],
  ['same', `re-baseline, nothing changed, ${of}`, 0.95, undefined],
] as const;
const seconds = (r: Result) => r.ms / 1000;
const rows: Row[] = jobs.flatMap(([job, work, toPsql, toFloor]) => [
  ...(psql
    ? [
        {
          ...against(work, PSQL, 's', [`${job} ours`, `${job} psql`], seconds, toPsql),
          rssMb: result(`${job} ours`).rssMb,
        },
      ]
    : []),
  against(work, FLOOR, 's', [`${job} ours`, `${job} floor`], seconds, toFloor),
]);
rows.push(
  {
    work: `peak memory of a re-baseline, ${of}`,
    ours: result('changed ours').rssMb,
    unit: 'MB',
    reach: { is: '≤', limit: 130 },
  },
  against(
    `peak memory, ${of}`,
    `${few.toLocaleString('en-US')} SKUs`,
    'MB',
    ['changed ours', 'few ours'],
    (r) => r.rssMb,
    1.15,
  ),
  against(
    `WAL of a re-baseline, ${of}`,
    UPSERT,
    'MB',
    ['changed ours', 'changed upsert'],
    (r) => r.walMb,
    0.7,
  ),
  against(`WAL, nothing changed, ${of}`, UPSERT, 'MB', ['same ours', 'same upsert'], (r) => r.walMb),
  {
    work: `WAL, nothing changed, ${of}`,
    ours: result('same ours').walMb,
    unit: 'MB',
    reach: { is: '≤', limit: 1 },
  },
  against(`re-baseline, ${of}`, UPSERT, 's', ['changed ours', 'changed upsert'], seconds),
  {
    work: `dead rows, nothing changed, ${of}`,
    ours: result('same ours').deadTuples,
    unit: '',
    reach: { is: '≤', limit: 0 },
  },
  against(
    `dead rows of a re-baseline, ${of}`,
    UPSERT,
    '',
    ['changed ours', 'changed upsert'],
    (r) => r.deadTuples,
  ),
);
report(rows, json);
