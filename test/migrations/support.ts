import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { World } from '../../src/sandbox/index.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { MIGRATIONS } from '../../src/store/setup/journal.ts';

interface Journal {
  readonly entries: { tag: string; when: number; idx: number; version: string; breakpoints: boolean }[];
}

function journal(): Journal {
  return JSON.parse(readFileSync(join(MIGRATIONS, 'meta/_journal.json'), 'utf8')) as Journal;
}

/** The number of this version's migrations. */
export const ALL = journal().entries.length;

/** Makes `folder` that of a later version: this one's migrations, followed by one with the given statements. */
export function laterVersion(folder: string, statements: string): string {
  const { entries, ...rest } = journal();
  const last = entries.at(-1);
  if (last === undefined) throw new Error('no migrations');
  mkdirSync(join(folder, 'meta'), { recursive: true });
  for (const { tag } of entries) cpSync(join(MIGRATIONS, `${tag}.sql`), join(folder, `${tag}.sql`));
  writeFileSync(join(folder, '9999_next.sql'), statements);
  const next = { ...last, idx: entries.length, tag: '9999_next', when: last.when + 1000 };
  writeFileSync(join(folder, 'meta/_journal.json'), JSON.stringify({ ...rest, entries: [...entries, next] }));
  return folder;
}

/** Makes `folder` that of an earlier version: this one's migrations before `tag`. */
export function versionBefore(folder: string, tag: string): string {
  const { entries, ...rest } = journal();
  const before = entries.slice(
    0,
    entries.findIndex((entry) => entry.tag === tag),
  );
  mkdirSync(join(folder, 'meta'), { recursive: true });
  for (const entry of before) cpSync(join(MIGRATIONS, `${entry.tag}.sql`), join(folder, `${entry.tag}.sql`));
  writeFileSync(join(folder, 'meta/_journal.json'), JSON.stringify({ ...rest, entries: before }));
  return folder;
}

/**
 * Fills a migrated database with a mirror in the middle of its work: SKUs in every state, some of them wrong and
 * due, waits, claims and runs of a dead daemon, history, a token, and a watched SKU.
 */
export async function fillMirror(sql: Sql, world: World): Promise<void> {
  await fillCatalog(sql, world);
  await fillRunning(sql, world);
}

async function fillCatalog(sql: Sql, world: World): Promise<void> {
  const listed = [...world.truth().values()].filter((row) => row.listed);
  const rows = listed.map((row, n) => ({ ...row, ...stateAt(n, row.answer), n }));
  await sql`
    insert into catalog.skus (sku, state, price_source, hash, sizes, in_manifest, priced_at, asked_at, first_priced_at, removed_at)
    select sku, state, source, hash, 1, state <> 'removed', asked, asked, case when state = 'priced' then asked end,
      case when state = 'removed' then now() end
    from jsonb_to_recordset(${sql.json(
      rows.map(({ sku, state, priceSource, hash }) => ({ sku, state, source: priceSource, hash })),
    )}) as r(sku text, state text, source text, hash text), lateral (
      select case when state <> 'pending' then now() - interval '10 minutes' end as asked) a`;
  const priced = rows.filter(({ state }) => state === 'priced');
  const prices = priced.flatMap(({ sku, sizeMap, wrong }) =>
    Object.entries(sizeMap).map(([size, price]) => ({ sku, size, price: wrong ? 1 : price })),
  );
  await sql`
    insert into catalog.prices (sku, size, price, changed_at)
    select sku, size, price, now() - interval '1 day'
    from jsonb_to_recordset(${sql.json(prices)}) as r(sku text, size text, price int)`;
  await sql`
    insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
    select sku, size, 7, price, changed_at from catalog.prices where price is distinct from 7`;
  await sql`
    insert into catalog.product_history (sku, field, old_value, new_value, observed_at)
    select distinct on (sku) sku, 'name', 'formerly', 'N', changed_at from catalog.prices order by sku`;
  await sql`
    insert into catalog.products (sku, name, model, brand, gender_size, size_type, category, size_map_size_type, product, refreshed_at, changed_at)
    select sku, p ->> 'name', p ->> 'model', p ->> 'brand', p ->> 'gender_size', p ->> 'size_type', p ->> 'category', "sizeType", p, now(), now()
    from jsonb_to_recordset(${sql.json(
      priced.map(({ sku, sizeType, product }) => ({ sku, sizeType, p: { ...product } })),
    )}) as r(sku text, "sizeType" text, p jsonb)`;
  // As if a daemon had claimed this many.
  await sql`select setval('catalog_internal.claim_numbers', 5)`;
  await sql`
    insert into catalog_internal.due (sku, lane, reason, live, due_at, generation, claim, held_until, deferrals, failures)
    select sku, lane, reason, coalesce(source = 'live', false), now() + make_interval(secs => due), 3, claim,
      case when held is not null then now() + make_interval(secs => held) end, deferrals, failures
    from jsonb_to_recordset(${sql.json(
      rows.map(({ sku, priceSource, ledger }) => ({ sku, source: priceSource, ...ledger })),
    )}) as r(sku text, source text, lane int, reason text, due float8, claim bigint, held float8, deferrals int, failures int)`;
}

interface Ledger {
  readonly lane: number;
  readonly reason: string;
  /** Seconds from now. */
  readonly due: number;
  readonly claim?: number;
  readonly held?: number;
  readonly deferrals: number;
  readonly failures: number;
}

const NONE = { deferrals: 0, failures: 0 };
const LATER: Ledger = { lane: 6, reason: 'sweep', due: 36_000, ...NONE };

/** Returns the nth SKU's state, whether its prices are out of date, and its row in the ledger. */
function stateAt(n: number, answer: string): { state: string; wrong: boolean; ledger: Ledger } {
  if (answer !== 'record') return { state: 'not_found', wrong: false, ledger: LATER };
  const states: { state: string; wrong: boolean; ledger: Ledger }[] = [
    { state: 'priced', wrong: false, ledger: LATER },
    { state: 'priced', wrong: true, ledger: { lane: 1, reason: 'changed', due: -60, ...NONE } },
    { state: 'pending', wrong: false, ledger: { lane: 3, reason: 'new', due: -600, ...NONE } },
    // Claimed by a daemon that has died.
    {
      state: 'priced',
      wrong: true,
      ledger: { lane: 1, reason: 'changed', due: -60, claim: 5, held: 600, ...NONE },
    },
    // Deferred, and failed: their waits are nearly over.
    {
      state: 'priced',
      wrong: true,
      ledger: { lane: 2, reason: 'live', due: -60, held: 1, deferrals: 2, failures: 0 },
    },
    {
      state: 'pending',
      wrong: false,
      ledger: { lane: 4, reason: 'new', due: -60, held: 1, deferrals: 0, failures: 3 },
    },
    { state: 'not_found', wrong: false, ledger: { lane: 5, reason: 'metadata', due: -60, ...NONE } },
  ];
  return states[n % states.length] ?? { state: 'pending', wrong: false, ledger: LATER };
}

/** Fills in a daemon's state: token, unfinished runs, and pace; and a watched SKU. */
async function fillRunning(sql: Sql, world: World): Promise<void> {
  await sql`
    update catalog_internal.sync set snapshot_id = ${world.newestSnapshot()}, snapshot_generated_at = now() - interval '1 hour',
      manifest_applied_at = now() - interval '50 minutes', manifest_lines = 10, delta_checked_at = now() - interval '9 minutes'`;
  await sql`
    update catalog_internal.tasks set next_at = now() + interval '3 days', succeeded_at = now(), started_at = now() where task = 'manifest'`;
  await sql`
    update catalog_internal.tasks set run = 3, running_until = now() + interval '1 hour', failures = 2, outcome = 'timeout' where task = 'delta'`;
  await sql`
    insert into catalog_internal.pace (ceiling, raised_at, episodes, refusal, backoff_until, half_open_sent_at)
    values (50, now() - interval '1 hour', 1, 'throttled-or-forbidden', now() - interval '1 minute', now() - interval '1 minute')`;
  await sql`insert into catalog_internal.pace_sends (sent_at, lane) select now() - interval '70 seconds', 'reprice' from generate_series(1, 3)`;
  await sql`insert into catalog.watchlist (sku, weight, note) select sku, 5, 'mine' from catalog.skus order by sku limit 1`;
}

/** Returns how many migrations were applied to a database. */
export async function applied(sql: Sql): Promise<number> {
  const [table] = await sql`select to_regclass('catalog_internal.migrations') is not null as there`;
  return table?.['there'] === true ? (await sql`select from catalog_internal.migrations`).length : 0;
}

/** Returns every column, function and index, and every row, except for the list of applied migrations. */
export async function everything(sql: Sql): Promise<Record<string, unknown>> {
  const tables = await sql<{ name: string }[]>`
    select schemaname || '.' || tablename as name from pg_tables
    where schemaname in ('catalog', 'catalog_internal') and tablename <> 'migrations' order by 1`;
  const rows = await Promise.all(
    tables.map(({ name }) => sql.unsafe(`select to_jsonb(t)::text as row from ${name} t order by 1`)),
  );
  const schema = await sql<{ what: string }[]>`
    select format('%s.%s.%s %s', table_schema, table_name, column_name, data_type) as what
      from information_schema.columns
      where table_schema in ('catalog', 'catalog_internal') and table_name <> 'migrations'
    union all select p.oid::regprocedure::text || md5(p.prosrc) from pg_proc p join pg_namespace n on n.oid = pronamespace
      where n.nspname in ('catalog', 'catalog_internal')
    union all select indexdef from pg_indexes
      where schemaname in ('catalog', 'catalog_internal') and tablename <> 'migrations'
    order by 1`;
  return {
    rows: Object.fromEntries(
      tables.map(({ name }, n) => [name, rows[n]?.map((row) => row['row'] as string)]),
    ),
    schema: schema.map(({ what }) => what),
  };
}
