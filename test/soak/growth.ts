import type { Sql } from '../../src/store/connection/db.ts';

/** What must not grow, each by its name: bytes, or a number of files. */
export type Sample = Readonly<Record<string, number>>;

/** So much more than at first, in its unit, is no growth; and so many times as much. */
const ALLOWED: readonly (readonly [of: RegExp, more: number, times: number])[] = [
  [/files$/, 20, 1.5],
  [/rss$/, 40 * 2 ** 20, 1.3],
  [/./, 4 * 2 ** 20, 2],
];

/** Histories are meant to grow. */
const HISTORY = /^catalog\.(price|product)_history/;

/** Bytes of every table of the mirror and of its queues, indexes included. */
export async function tableSizes(sql: Sql): Promise<Sample> {
  const rows = await sql<{ name: string; bytes: number }[]>`
    select format('%s.%s', schemaname, relname) as name, pg_total_relation_size(relid)::float8 as bytes
    from pg_stat_user_tables where schemaname like 'catalog%'`;
  return Object.fromEntries(
    rows.filter(({ name }) => !HISTORY.test(name)).map(({ name, bytes }) => [name, bytes]),
  );
}

/** Larger than in the middle third by this part: still growing. */
const STILL_GROWING = 0.1;

/**
 * What was larger in the last third than in the first, by more than comes and goes, and than in the middle: a table
 * that a mass of changes has made large once keeps its room, and uses it again.
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
