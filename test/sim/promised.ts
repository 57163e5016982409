import type { Sql } from '../../src/store/connection/db.ts';
import { type Draw, pick } from './faults.ts';
import type { Left } from './rest.ts';
import { serve } from './rest.ts';
import type { Rig } from './rig.ts';

/* Promises of prices' ages are kept, or are said not to be, by a healthy daemon while time passes. */

const MINUTE = 60_000;
const MINUTES = 15;
/** Calls that follow each other at once. */
const MOST_CALLS = 20;

interface Promised {
  readonly sku: string;
  readonly maxAge: number;
  /** Seconds since it was last asked for, or since it was promised if that is less. */
  readonly age: number;
  readonly because: string | null;
}

/** Reads late promises that the mirror calls feasible, with no reason against them other than being late. */
async function brokenPromises(sql: Sql): Promise<readonly Promised[]> {
  return await sql<Promised[]>`
    select p.sku, extract(epoch from p.max_age)::float8 as "maxAge", p.because,
      extract(epoch from now() - greatest(s.asked_at, w.promised_since))::float8 as age
    from catalog.promises p join catalog.skus s using (sku) join catalog_internal.watched w using (sku)
    where p.feasible and coalesce(p.because, 'late') = 'late'
      and greatest(s.asked_at, w.promised_since) < now() - p.max_age`;
}

/** Promises a seller some ages and lets time pass, while the prices of others move. */
export async function expectPromisesAreKept(
  rig: Rig,
  left: Left,
  draw: Draw,
  move: () => void,
): Promise<void> {
  const { sql, partner, time } = rig;
  const all = [...partner.world.truth().values()].filter(({ answer }) => answer === 'record');
  const some = Array.from({ length: 1 + draw(4) }, () => pick(all, draw).sku);
  for (const sku of some)
    await sql`
      insert into catalog.watchlist (sku, max_age) values (${sku}, ${pick(['2 minutes', '10 minutes'], draw)}::interval)
      on conflict do nothing`;
  rig.note('promised', some.length);
  for (let minute = 0; minute < MINUTES; minute += 1) {
    move();
    await serve(rig, left, 'delta');
    for (let n = 0; n < MOST_CALLS && (await serve(rig, left, 'reprice')); n += 1);
    const broken = await brokenPromises(sql);
    if (broken.length > 0) throw new Error(`promised and not kept: ${JSON.stringify(broken)}`);
    await time.pass(MINUTE / 2);
    for (let n = 0; n < MOST_CALLS && (await serve(rig, left, 'reprice')); n += 1);
    await time.pass(MINUTE / 2);
  }
  await sql`delete from catalog.watchlist`;
}
