import type { Sql } from '../../src/store/connection/db.ts';

/** What must not grow, by name: bytes, or a number of files. */
export type Sample = Readonly<Record<string, number>>;

/** Growth is accepted up to this much more than at first, in its unit, or up to this factor. */
const ALLOWED: readonly (readonly [of: RegExp, more: number, times: number])[] = [
  [/files$/, 20, 1.5],
  [/rss$/, 40 * 2 ** 20, 1.3],
  [/./, 4 * 2 ** 20, 2],
];

/** Histories are expected to grow. */
const HISTORY = /^catalog\.(price|product)_history/;

/** Returns the bytes of every table of the mirror and its queues, indexes included. */
export async function tableSizes(sql: Sql): Promise<Sample> {
  const rows = await sql<{ name: string; bytes: number }[]>`
    select format('%s.%s', schemaname, relname) as name, pg_total_relation_size(relid)::float8 as bytes
    from pg_stat_user_tables where schemaname like 'catalog%'`;
  return Object.fromEntries(
    rows.filter(({ name }) => !HISTORY.test(name)).map(({ name, bytes }) => [name, bytes]),
  );
}

/** A last third that exceeds the middle third by this share is still growing. */
const STILL_GROWING = 0.1;

/**
 * Returns what was larger in the last third than in the first, beyond the accepted growth, and larger than in the
 * middle: a table that one mass of changes has made large keeps its space and reuses it.
 */
export function grown(samples: readonly Sample[]): string[] {
  const third = Math.floor(samples.length / 3);
  if (third === 0) return [];
  const most = (some: readonly Sample[], name: string) =>
    Math.max(...some.map((sample) => sample[name] ?? 0));
  const names = new Set(samples.flatMap((sample) => Object.keys(sample)));
  return [...names].flatMap((name) => {
    const first = most(samples.slice(0, third), name);
    const middle = most(samples.slice(third, -third), name);
    const last = most(samples.slice(-third), name);
    const [, more, times] = ALLOWED.find(([of]) => of.test(name)) ?? [/./, 0, 1];
    return last > first + more && last > first * times && last > middle * (1 + STILL_GROWING)
      ? [`${name}: ${[first, middle, last].map((value) => shown(name, value)).join(' → ')}`]
      : [];
  });
}

function shown(name: string, value: number): string {
  return name.endsWith('files') ? String(value) : `${(value / 2 ** 20).toFixed(1)} MB`;
}
