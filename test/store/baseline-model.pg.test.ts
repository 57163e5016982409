import { assert, asyncProperty, boolean, constantFrom, option, record, type Arbitrary } from 'fast-check';
import { expect, test } from 'vitest';
import type { StagedLine } from '../../src/store/catalog/compare-sql.ts';
import { runs } from '../support/soak.ts';
import { baseline, line } from './manifest.ts';
import { empty, type TestStore, useStore } from './support.ts';

const store = useStore();
const SKUS = ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'];

const anySource = constantFrom('snapshot' as const, 'live' as const);
const anyHash = constantFrom('h1', 'h2', null);
/** A SKU as the mirror may know it before the manifest. */
const anyKnown = record({
  state: constantFrom('pending', 'priced', 'priced', 'priced', 'not_found', 'removed'),
  source: option(anySource, { freq: 8 }),
  hash: anyHash,
  sizes: constantFrom(3, 4, null),
  listed: constantFrom(true, true, true, false),
  /** Before the snapshot was named, since then, or so soon after it that a cache may have given the answer. */
  asked: constantFrom('before' as const, 'since' as const, 'soon' as const),
  reported: constantFrom('never' as const, 'never' as const, 'earlier' as const, 'since' as const),
  owed: boolean(),
  countsAsLive: boolean(),
});
/** A SKU as the manifest may list it. */
const anyListed = record({
  source: anySource,
  hash: constantFrom('h1', 'h2'),
  sizes: constantFrom(3, 4),
  lines: constantFrom(1, 1, 1, 2),
});
const anySku = record({
  known: option(anyKnown),
  listed: option(anyListed),
  rejected: constantFrom(false, false, true),
});
const anyCase = record({
  skus: record(Object.fromEntries(SKUS.map((sku) => [sku, anySku]))),
  /**
   * Whether the deltas since the manifest was requested go on, or have broken off so that its token replaces
   * theirs.
   */
  deltas: constantFrom('go on' as const, 'go on' as const, 'broke off' as const),
  /** Whether the deltas came before the manifest was requested, and it is of the snapshot that they have left. */
  lags: boolean(),
  /** Whether second checks have found that the partner has no cache. */
  cacheless: boolean(),
});

type Case = typeof anySku extends Arbitrary<infer T> ? T : never;
type Known = NonNullable<Case['known']>;
interface Seen {
  readonly state: string;
  readonly source: string | null;
  readonly hash: string | null;
  readonly sizes: number | null;
  readonly listed: boolean;
  /** The reason of the mark that the manifest made, or null. */
  readonly marked: string | null;
  readonly live: boolean;
}

function before(known: Known): Seen {
  const { state, source, sizes, listed, countsAsLive } = known;
  return { state, source, hash: hashBefore(known), sizes, listed, marked: null, live: countsAsLive };
}

/** A report clears the hash. */
const hashBefore = ({ hash, reported }: Known) => (reported === 'since' ? null : hash);

/** Returns what a merge makes of one SKU: partner rules 4.2, in their order of precedence. */
function after(
  { known, listed, rejected }: Case,
  { isReplaced, cacheless }: { readonly isReplaced: boolean; readonly cacheless: boolean },
): Seen | null {
  if (known?.reported === 'since' && !isReplaced) return before(known);
  // A SKU whose line cannot be read is requested.
  const unread = rejected ? (known === null || known.state === 'pending' ? 'new' : 'changed') : null;
  if (listed === null) {
    if (known === null) return rejected ? { ...UNKNOWN, marked: unread } : null;
    if (rejected || !known.listed) return { ...before(known), marked: unread };
    return { ...before(known), listed: false, hash: null, marked: 'absent' };
  }
  if (known?.reported === 'since' && isLiveAsListed(known, listed))
    return { ...before(known), marked: unread };
  // A SKU reported as live stays live until a delta from the manifest's token says otherwise.
  const live = listed.source === 'live' || (known?.reported === 'since' && known.source === 'live');
  const source = live ? 'live' : 'snapshot';
  const now = { source, hash: live ? null : listed.hash, sizes: listed.sizes, listed: true };
  if (known === null) return { state: 'pending', ...now, marked: 'new', live };
  const crossed = known.source !== source;
  const marked = reasonToPrice(known, listed, { crossed, cacheless });
  // A SKU that did not cross keeps what its deferrals have taught, unless it starts anew.
  return {
    ...before(known),
    ...now,
    marked: marked ?? unread,
    live: crossed || marked === 'new' ? live : known.countsAsLive,
  };
}

/** A SKU known only by its name in a line: whether deltas report its moves is unknown. */
const UNKNOWN: Seen = {
  state: 'pending',
  source: null,
  hash: null,
  sizes: null,
  listed: false,
  marked: null,
  live: false,
};

/** Whether this is a live SKU that a delta has reported, and that matches its line. */
function isLiveAsListed(known: Known, listed: NonNullable<Case['listed']>): boolean {
  const { source, sizes, lines } = listed;
  return known.listed && lines === 1 && source === 'live' && known.source === 'live' && known.sizes === sizes;
}

function reasonToPrice(
  known: Known,
  listed: NonNullable<Case['listed']>,
  { crossed, cacheless }: { readonly crossed: boolean; readonly cacheless: boolean },
): string | null {
  // Of two lines neither counts. What a delta reported meanwhile is requested, whichever of the two is newer.
  if (listed.lines > 1 || known.reported === 'since') return 'changed';
  if (known.state === 'pending') return crossed || !known.listed ? 'new' : null;
  if (crossed) return 'changed';
  const moved = listed.source === 'snapshot' && known.hash !== listed.hash;
  const isNewer = known.asked === 'since' || (known.asked === 'soon' && cacheless);
  const asked = isNewer && known.state !== 'removed';
  return (moved || !known.listed) && !asked ? 'changed' : null;
}

function hashOf(listed: NonNullable<Case['listed']>): string | null {
  return listed.source === 'live' ? null : listed.hash;
}

/** Inserts the case's SKUs into the tables; a due one is claimed by nobody and marked for another reason. */
async function prepare({ sql }: TestStore, cases: Readonly<Record<string, Case>>): Promise<void> {
  for (const [sku, { known }] of Object.entries(cases)) {
    if (known === null) continue;
    // The newest claim is the first: none has been made yet.
    const claim = known.asked === 'before' ? 1 : 2;
    // The snapshot was named at the beginning of time (manifest.ts).
    const askedAt = known.asked === 'soon' ? new Date(60_000) : new Date();
    const { state, source, hash, sizes, listed } = known;
    await sql`
      insert into catalog.skus (sku, state, price_source, hash, sizes, in_manifest, updated_at, reported_at, asked_at)
      values (${sku}, ${state}, ${source}, ${hash}, ${sizes}, ${listed}, ${line(sku).updatedAt},
        ${known.reported === 'earlier' ? new Date(0) : null}, ${state === 'pending' ? null : askedAt})`;
    await sql`
      insert into catalog_internal.due (sku, lane, reason, live, due_at, generation, asked_claim)
      values (${sku}, 6, 'sweep', ${known.countsAsLive}, now() + make_interval(hours => ${known.owed ? -1 : 1}), 5,
        ${state === 'pending' ? null : claim})`;
  }
}

async function seen({ sql }: TestStore): Promise<Record<string, Seen>> {
  const rows = await sql<(Seen & { sku: string })[]>`
    select sku, state, price_source as source, hash, sizes, in_manifest as listed, d.live,
      case when d.generation <> 5 then d.reason end as marked
    from catalog.skus join catalog_internal.due d using (sku)`;
  return Object.fromEntries(rows.map(({ sku, ...row }) => [sku, row]));
}

test('whatever the mirror and a manifest contain, the merge leaves exactly what the rules say', async () => {
  await assert(
    asyncProperty(anyCase, async ({ skus: cases, deltas, lags, cacheless }) => {
      await empty(store.sql);
      await store.sql`update catalog_internal.beliefs set again_share = ${cacheless ? 0.05 : 1}`;
      await prepare(store, cases);
      const entries = Object.entries(cases);
      const lines = entries.flatMap(([sku, { listed }]): StagedLine[] =>
        listed === null
          ? []
          : Array.from({ length: listed.lines }, () =>
              line(sku, { priceSource: listed.source, hash: hashOf(listed), sizes: listed.sizes }),
            ),
      );
      const reported = entries.filter(([, { known }]) => known?.reported === 'since').map(([sku]) => sku);
      const isReplaced = reported.length === 0 || deltas === 'broke off';
      const report = async () => {
        await store.sql`insert into catalog_internal.left_tokens values ('m1', now())`;
        await store.sql`update catalog.skus set reported_at = now(), hash = null where sku = any(${reported})`;
        await store.sql`
          update catalog_internal.sync set snapshot_id = case when ${reported.length > 0} then 'of a delta' end,
            chain_broken_at = case when ${isReplaced} then now() end`;
      };
      if (lags) await report();
      const merged = baseline(store.url, lines, {
        rejected: entries.filter(([, { rejected }]) => rejected).map(([sku]) => sku),
        meanwhile: lags ? () => Promise.resolve() : report,
      });
      const { applied } = await merged;
      const wanted = entries.flatMap(([sku, of]) => {
        const row = after(of, { isReplaced, cacheless });
        return row === null ? [] : [[sku, row] as const];
      });
      expect(await seen(store)).toEqual(Object.fromEntries(wanted));
      expect(applied).toMatchObject({
        added: entries.filter(
          ([, { known, listed, rejected }]) => known === null && (listed !== null || rejected),
        ).length,
        absent: wanted.filter(([, { marked }]) => marked === 'absent').length,
        marked: wanted.filter(([, { marked }]) => marked !== null).length,
      });
    }),
    { numRuns: runs(20, 80) },
  );
});
