import { type HourOfMoves, NO_MOVES } from '../../src/store/answer/hour-of-moves.ts';
import type { KnownMassMove } from '../../src/store/answer/mass-move.ts';
import { followMoves } from '../../src/store/answer/mass-moves.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import { acceptDoubted } from '../../src/store/answer/seller-doubts.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { restoreLedger } from '../../src/store/ledger/lost-rows.ts';
import { pauseRequests, resumeRequests } from '../../src/store/sellers/pause.ts';
import { refreshAll, refreshSkus } from '../../src/store/sellers/refresh.ts';
import { readScope, storeScopeMode } from '../../src/store/sellers/scope.ts';
import { type Draw, pick } from './faults.ts';
import type { Rig } from './rig.ts';

/* What operators, sellers and others with a login do to the database of a mirror. */

/** A seller's trigger that rejects any price of these SKUs. */
export const SELLERS_TRIGGER = `
  create table sim.objected (sku text primary key);
  create function sim.object() returns trigger language plpgsql as $$
    begin
      if exists (select from sim.objected o where o.sku = new.sku) then
        raise exception 'not this one' using errcode = '23514';
      end if;
      return new;
    end $$;
  create trigger object before insert or update of price on catalog.prices for each row execute function sim.object()`;

/** What another daemon has counted in the last hour. */
const HOURS: readonly Partial<HourOfMoves>[] = [
  { answers: 300, moves: 300, move: 1 },
  { answers: 300, implausible: 300, implausibleSkus: 64, factor: Math.log(100) },
  { answers: 3000, implausible: 20, implausibleSkus: 20, factor: Math.log(100) },
  { answers: 300, implausible: 300, implausibleSkus: 64, onePrice: 300 },
  { answers: 300, lost: 300 },
];

async function known(sql: Sql): Promise<KnownMassMove> {
  const [row] = await sql<[KnownMassMove]>`
    select since, kind, usual, factor, null as accepted from catalog_internal.mass_move`;
  return row;
}

/** Lets another daemon find that prices have begun to move in masses. */
async function massesBegin(sql: Sql, draw: Draw): Promise<void> {
  const hour = { ...NO_MOVES, ...pick(HOURS, draw) };
  await followMoves(sql, { ...NO_OBSERVERS.moves, hour: () => hour }, [], await known(sql));
}

/** Lets another daemon find that they no longer do. */
async function massesEnd(sql: Sql): Promise<void> {
  await followMoves(sql, { ...NO_OBSERVERS.moves, areEnough: () => true }, [], await known(sql));
}

type Act = (rig: Rig, draw: Draw, some: () => string[]) => Promise<unknown>;

export const ACTS: Readonly<Record<string, Act>> = {
  'a trigger objects': ({ sql }, _, some) =>
    sql`insert into sim.objected (sku) select * from unnest(${some()}::text[]) on conflict do nothing`,
  'no trigger objects': ({ sql }) => sql`delete from sim.objected`,
  'masses begin': ({ sql }, draw) => massesBegin(sql, draw),
  'masses end': ({ sql }) => massesEnd(sql),
  'some doubts are accepted': ({ sql }, _, some) => acceptDoubted(sql, some()),
  'all doubts are accepted': ({ sql }) => acceptDoubted(sql, null),
  'some are watched': ({ sql }, draw, some) => watch(sql, draw, some()),
  'some are watched no more': ({ sql }, _, some) =>
    sql`delete from catalog.watchlist where sku = any(${some()})`,
  'a seller refreshes': ({ sql }, _, some) =>
    sql`select catalog.refresh(${some()}::text[])`.catch((error: { code?: string }) => {
      if (error.code !== 'CM004') throw error;
    }),
  'requests are paused': pauseFor,
  'requests go on': resume,
  'everything is refreshed': ({ sql }, draw) => refreshAll(sql, pick(['prices', 'metadata'], draw)),
  'some are refreshed': ({ sql }, _, some) => refreshSkus(sql, some()),
  'rows of the ledger are deleted': ({ sql }, _, some) =>
    sql`delete from catalog_internal.due where sku = any(${some()})`,
  'lost rows are restored': ({ sql }) => restoreLedger(sql, '', 1000),
  'rules count': ({ sql }) => storeScopeMode(sql, true),
  'rules count no more': ({ sql }) => storeScopeMode(sql, false),
  'rules are added': ({ sql }, draw, some) => addRules(sql, draw, some()),
  'rules are deleted': ({ sql }, draw) => sql`delete from catalog.scope where length(value) % 3 = ${draw(3)}`,
  'somebody hints': ({ sql }, draw, some) =>
    sql`select catalog.hint(sku, ${`source ${draw(2)}`}) from unnest(${some()}::text[]) as s(sku)`,
};

/** Pauses all requests. */
export async function pauseFor(rig: Rig, draw: Draw): Promise<void> {
  const forMs = pick([60_000, 600_000, null], draw);
  const { pause } = await pauseRequests(rig.sql, { forMs, by: 'somebody' });
  rig.pause = { since: pause.setAt, until: pause.until ?? Infinity };
}

/** Ends the pause. */
export async function resume(rig: Rig): Promise<void> {
  await resumeRequests(rig.sql, 'somebody');
  rig.pause = null;
}

/** Watches SKUs with drawn weights and maximum ages. */
async function watch(sql: Sql, draw: Draw, skus: readonly string[]): Promise<void> {
  for (const sku of skus) {
    const age = pick([null, '1 minute', '10 minutes', '2 hours'], draw);
    const weight = pick([0.1, 1, 20], draw);
    await sql`
      insert into catalog.watchlist (sku, weight, max_age) values (${sku}, ${weight}, ${age}::interval)
      on conflict (sku) do update set weight = excluded.weight, max_age = excluded.max_age`;
  }
}

/** Includes or excludes drawn SKUs, or prefixes of them. */
async function addRules(sql: Sql, draw: Draw, skus: readonly string[]): Promise<void> {
  for (const sku of skus) {
    const [kind, value] = draw(2) === 0 ? ['sku', sku] : ['prefix', sku.slice(0, 1 + draw(4))];
    await sql`
      insert into catalog.scope (kind, value, include) values (${kind}, ${value}, ${draw(3) > 0}) on conflict do nothing`;
  }
}

/** Carries out a drawn act. Returns its name. */
export async function interfere(rig: Rig, draw: Draw): Promise<string> {
  const all = [...rig.partner.world.truth().keys()];
  const some = () => [...new Set(Array.from({ length: 1 + draw(4) }, () => pick(all, draw)))].toSorted();
  const [name, act] = pick(Object.entries(ACTS), draw);
  await act(rig, draw, some);
  return name;
}

/** Ends all interference. */
export async function leaveAlone(rig: Rig): Promise<void> {
  const { sql } = rig;
  await sql`delete from sim.objected`;
  await resume(rig);
  await sql`delete from catalog.watchlist`;
  await massesEnd(sql);
  await sql`delete from catalog.scope`;
  await storeScopeMode(sql, false);
  await readScope(sql, { everything: true, pieces: 1000 });
  await restoreLedger(sql, '', 1000);
}
