import { Baseline } from '../../src/store/catalog/baseline.ts';
import type { StagedLine } from '../../src/store/catalog/compare-sql.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { sizes } from '../frame/options.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report, type Row } from '../frame/table.ts';
import { seeded } from '../freshness/random.ts';

/*
 * npm run bench:rebaseline [-- --skus 200000 --rounds 1 --json FILE] What it costs not to believe when a snapshot was
 * built: a manifest that replaces a broken chain spares a refresh only where the price was asked for after an answer
 * had named that snapshot. Everything was asked within the last 43 minutes, as spare slots do; 3 % of the SKUs have
 * another hash in each snapshot. How many SKUs are asked about again, against how many would be if the time at which
 * it was built were known for certain.
 */

const { skus, json } = sizes({ skus: 200_000, rounds: 1 });
const SWEEP_MINUTES = 43;
const MOVED_PART = 0.03;
const SKUS_A_MINUTE = 118 * 95;

/**
 * Minutes before the manifest: when the snapshot was built, and when an answer first named it, a
 * CATALOG_CHECK_INTERVAL (5 min) later at most.
 */
const CASES = [
  { what: 'built 30 minutes before, named 2.5 minutes later', built: 30, named: 27.5 },
  { what: 'built 30 minutes before, named 5 minutes later', built: 30, named: 25 },
  { what: 'built 5 minutes before, named by the manifest itself', built: 5, named: 0 },
] as const;

const nameOf = (n: number) => `SKU-${String(n).padStart(7, '0')}`;
/** Claims by the minute, so that what was claimed so many minutes ago can be told. */
const CLAIMS_A_MINUTE = 1000;
const claimOf = (minutesAgo: number) => String(Math.round((SWEEP_MINUTES - minutesAgo) * CLAIMS_A_MINUTE));

/** A listed SKU, as of an edition: `moved` ones have another hash in each. */
function lineOf(n: number, moved: ReadonlySet<number>, edition: number): StagedLine {
  const hash = moved.has(n) ? `h${edition}` : 'h0';
  return { sku: nameOf(n), sizes: 3, hash, priceSource: 'snapshot', updatedAt: '2026-11-20T10:00:00.000Z' };
}

/**
 * Merges a manifest whose snapshot is known to have been there since `seenMinutes` ago. Returns how many SKUs are
 * asked about.
 */
async function merge(
  url: string,
  moved: ReadonlySet<number>,
  edition: number,
  seenMinutes: number,
): Promise<number> {
  const run = await Baseline.open(url);
  try {
    const { at, token } = await run.moment();
    for (let from = 0; from < skus; from += 10_000) {
      const count = Math.min(10_000, skus - from);
      await run.stage(
        Array.from({ length: count }, (_, n) => lineOf(from + n, moved, edition)),
        [],
      );
    }
    await run.count();
    const applied = await run.merge({
      snapshotId: `s${edition}`,
      generatedAt: null,
      seenClaim: claimOf(seenMinutes),
      // It is known that no cache of the partner's has any price.
      seenAt: new Date(0),
      requestedAt: at,
      tokenAtRequest: token,
      lines: skus,
      livePricedSkuCount: 0,
    });
    return applied.marked;
  } finally {
    await run.close();
  }
}

/** Everything is priced, asked evenly over the last minutes, and due in its turn. */
async function settleAll(sql: Sql): Promise<void> {
  await sql`
    update catalog.skus set state = 'priced', priced_at = now(), asked_at = now()`;
  await sql`update catalog_internal.due set asked_claim = ${SWEEP_MINUTES * CLAIMS_A_MINUTE} * random(), reason = 'sweep', lane = catalog_internal.lane_of('sweep'), due_at = now() + interval '1 day'`;
}

await withMirrorDatabase(async ({ sql, url }) => {
  const random = seeded(7);
  const moved = new Set(Array.from({ length: skus }, (_, n) => n).filter(() => random() < MOVED_PART));
  await merge(url, moved, 0, 0);
  await settleAll(sql);
  const rows: Row[] = [];
  let edition = 0;
  for (const { what, built, named } of CASES) {
    const marked: number[] = [];
    for (const seenMinutes of [named, built]) {
      edition += 1;
      marked.push(await merge(url, moved, edition, seenMinutes));
      await settleAll(sql);
    }
    const [byEvidence = 0, byTime = 0] = marked;
    rows.push({
      work: what,
      ours: byEvidence,
      unit: 'SKUs',
      against: { what: 'by the time it was built', value: byTime },
    });
    rows.push({
      work: `${what}: the share's time for the others`,
      ours: ((byEvidence - byTime) / SKUS_A_MINUTE) * 60,
      unit: 's',
    });
  }
  report(rows, json);
});
