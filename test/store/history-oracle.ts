import type { Queryable } from '../../src/store/connection/db.ts';

/*
 * What a size cost at each moment, replayed from all of its changes: an independent reading of docs/history.md, with
 * which tests compare catalog.price_at and catalog.daily_prices. Times are microseconds since 1970.
 */

export interface Change {
  readonly id: bigint;
  readonly before: number | null;
  readonly after: number | null;
  readonly observedAt: bigint;
  readonly corrected: boolean;
}

/** One size of a SKU: its changes in the order of their commits, and what it costs now. */
export interface Series {
  readonly changes: readonly Change[];
  readonly firstPricedAt: bigint | null;
  readonly present: number | null;
}

export const DAY_US = 86_400_000_000n;
const latest = (a: bigint, b: bigint) => (a > b ? a : b);

/** Returns changes with the time from which each counts: when it was observed, but not before the one before it. */
export function counting({ changes }: Series): (Change & { readonly at: bigint })[] {
  let at = changes[0]?.observedAt ?? 0n;
  return changes.map((change) => {
    at = latest(at, change.observedAt);
    return { ...change, at };
  });
}

/** Returns the price at a moment; null: there was none, or nobody knows. */
export function priceAt(series: Series, moment: bigint): number | null {
  if (series.firstPricedAt === null || moment < series.firstPricedAt) return null;
  const changes = counting(series);
  const last = changes.findLast(({ at }) => at <= moment);
  if (last !== undefined) return last.after;
  const [first] = changes;
  return first === undefined ? series.present : first.before;
}

export interface Day {
  readonly day: string;
  readonly open: number | null;
  readonly low: number | null;
  readonly median: number | null;
  readonly close: number | null;
  readonly changes: number;
  readonly corrected: boolean;
  /** When the first change counts, in microseconds; `only`: the same if it is the only one and no correction. */
  readonly first: string;
  readonly only: string | null;
}

/** Returns each day on which the price changed, oldest first. */
export function daysOf(series: Series): Day[] {
  const byDay = Map.groupBy(counting(series), ({ at }) => at / DAY_US);
  return [...byDay].map(([number, changes]) => {
    const [begins, ends] = [number * DAY_US, (number + 1n) * DAY_US];
    const correction = changes.findLastIndex(({ corrected }) => corrected);
    const from = changes[correction]?.at ?? begins;
    const turns = [from, ...changes.map(({ at }) => at), series.firstPricedAt ?? begins, ends]
      .filter((at) => at >= from && at <= ends)
      .toSorted((a, b) => (a < b ? -1 : 1));
    const spans = turns
      .slice(1)
      .map((until, i) => ({ held: until - (turns[i] ?? 0n), price: priceAt(series, turns[i] ?? 0n) }));
    return {
      day: new Date(Number(begins / 1000n)).toISOString().slice(0, 10),
      open: priceAt(series, begins - 1n),
      ...middleOf(spans),
      close: priceAt(series, ends - 1n),
      changes: changes.length - correction - 1,
      corrected: correction >= 0,
      first: String(changes[0]?.at),
      only: changes.length === 1 && correction < 0 ? String(changes[0]?.at) : null,
    };
  });
}

/** Returns the lowest price, and the lowest one that was not exceeded for at least half of the time. */
function middleOf(spans: readonly { readonly held: bigint; readonly price: number | null }[]) {
  const prices = spans
    .filter(({ held, price }) => held > 0n && price !== null)
    .toSorted((a, b) => (a.price ?? 0) - (b.price ?? 0));
  const whole = prices.reduce((sum, { held }) => sum + held, 0n);
  let upto = 0n;
  const median = prices.find(({ held }) => 2n * (upto += held) >= whole)?.price ?? null;
  return { low: prices[0]?.price ?? null, median };
}

/** Reads every size in `history` (a table like price_history) or in prices, by `sku size`. */
export async function readSeries(sql: Queryable, history: string): Promise<Map<string, Series>> {
  const rows = await sql.unsafe<
    {
      key: string;
      first: string | null;
      present: number | null;
      changes: { id: string; before: number | null; after: number | null; at: string; corrected: boolean }[];
    }[]
  >(`
    select k.sku || ' ' || k.size as key, (extract(epoch from s.first_priced_at) * 1000000)::bigint::text as first, p.price as present,
      coalesce((
        select jsonb_agg(jsonb_build_object('id', h.id::text, 'before', old_price, 'after', new_price, 'corrected', size_type_changed,
          'at', (extract(epoch from observed_at) * 1000000)::bigint::text) order by h.id)
        from ${history} h where h.sku = k.sku and h.size = k.size
      ), '[]') as changes
    from (select sku, size from ${history} union select sku, size from catalog.prices) k
    left join catalog.skus s using (sku) left join catalog.prices p using (sku, size) order by 1`);
  return new Map(
    rows.map(({ key, first, present, changes }) => [
      key,
      {
        firstPricedAt: first === null ? null : BigInt(first),
        present,
        changes: changes.map(({ id, at, ...change }) => ({
          ...change,
          id: BigInt(id),
          observedAt: BigInt(at),
        })),
      },
    ]),
  );
}

/** Reads catalog.daily_prices, by `sku size`. */
export async function readDays(sql: Queryable): Promise<Map<string, Day[]>> {
  const rows = await sql<(Day & { key: string })[]>`
    select sku || ' ' || size as key, day::text, open, low, median, close, changes, size_type_changed as corrected,
      (extract(epoch from first_change_at) * 1000000)::bigint::text as first, (extract(epoch from only_change_at) * 1000000)::bigint::text as only
    from catalog.daily_prices order by sku, size, day`;
  const found = new Map<string, Day[]>();
  for (const { key, ...day } of rows) found.set(key, [...(found.get(key) ?? []), day]);
  return found;
}
