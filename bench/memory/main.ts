import { join } from 'node:path';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { sizes } from '../frame/options.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report } from '../frame/table.ts';
import { buildMirrorProcess } from '../ingest/build.ts';
import { onCopy, urlOf } from '../ingest/databases.ts';
import { writeManifest } from '../ingest/manifest.ts';
import { byMirror } from '../ingest/ours.ts';
import { startUpstream } from '../ingest/upstream.ts';

/*
 * npm run bench:memory [-- --skus 10000000 --json FILE] The most memory that the mirror's process holds while it
 * fills a mirror from a manifest of that many lines, and from one of a hundredth of them: a catalog of any size has
 * to fit. One round, as a manifest of ten million lines takes minutes.
 */

const { skus, json } = sizes({ skus: 10_000_000, rounds: 1 });
const few = Math.max(1000, Math.round(skus / 100));

await withMirrorDatabase(
  async ({ sql, url, folder }) => {
    const upstream = await startUpstream();
    try {
      await sql.unsafe('create database fresh');
      await migrateDatabase(urlOf(url, 'fresh'));
      const mirror = byMirror(buildMirrorProcess(folder), upstream);
      const fill = async (of: number) => {
        const path = join(folder, String(of));
        const files = { gzip: `${path}.gz`, split: `${path}.tsv` };
        const lines = await writeManifest('former', of, files);
        const manifest = { snapshotId: String(of), generatedAt: new Date(), lines, ...files };
        return (await onCopy(sql, url, 'fresh', (copy) => mirror(copy, manifest))).result;
      };
      const [small, large] = [await fill(few), await fill(skus)];
      const [of, ofFew] = [skus, few].map((n) => n.toLocaleString('en-US'));
      report(
        [
          {
            work: `peak memory of a fill, ${of} lines`,
            ours: large.rssMb,
            unit: 'MB',
            reach: { is: '≤', limit: 130 },
          },
          {
            work: `peak memory of a fill, ${of} lines`,
            ours: large.rssMb,
            unit: 'MB',
            against: { what: `${ofFew} lines`, value: small.rssMb },
            reach: { is: '≤', limit: 1.15 },
          },
          { work: `a fill, ${of} lines`, ours: large.ms / 1000, unit: 's' },
        ],
        json,
      );
    } finally {
      upstream.close();
    }
  },
  { settings: { max_wal_size: '8GB', autovacuum: 'off' } },
);
