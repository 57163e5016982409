import type { Sql } from '../../src/store/connection/db.ts';

/* A backup of a mirror's database, and a replica of it that lacks the last commits. */

/**
 * SQL: functions that save all rows and sequences of the mirror, and restore them. Triggers do not fire meanwhile,
 * as when a dump is loaded. Numbers of a sequence may continue from where the replica knows, which is a little
 * further.
 */
export const BACKUPS = `
  create schema backup;
  create table backup.sequences (name text primary key, last_value bigint not null, is_called boolean not null);
  create function sim.tables() returns table (target regclass, kept text) language sql as $$
    select format('%I.%I', n.nspname, c.relname)::regclass, n.nspname || '.' || c.relname
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('catalog', 'catalog_internal') and c.relkind = 'r' and c.relname <> 'migrations'
    -- First those whose triggers fire in any case: they write into others.
    order by c.relname not in ('skus', 'watchlist', 'scope'), 2 $$;
  create function sim.columns_of(target regclass) returns text language sql as $$
    select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
    where attrelid = target and attnum > 0 and not attisdropped and attgenerated = '' $$;
  create function sim.back_up() returns void language plpgsql as $$
  declare
    t record;
  begin
    for t in select * from sim.tables() loop
      execute format('drop table if exists backup.%I; create table backup.%1$I as table %s', t.kept, t.target);
    end loop;
    delete from backup.sequences;
    for t in select format('%I.%I', schemaname, sequencename) as name from pg_sequences where schemaname in ('catalog', 'catalog_internal') loop
      execute format('insert into backup.sequences select %L, last_value, is_called from %s', t.name, t.name);
    end loop;
  end $$;
  create function sim.restore(further integer) returns void language plpgsql set session_replication_role = replica as $$
  declare
    t record;
  begin
    for t in select * from sim.tables() where sim.columns_of(target) is not null loop
      execute format('delete from %s', t.target);
      execute format('insert into %1$s (%2$s) overriding system value select %2$s from backup.%3$I', t.target, sim.columns_of(t.target), t.kept);
    end loop;
    perform setval(name::regclass, last_value + case when is_called then further else 0 end, is_called) from backup.sequences;
  end $$`;

/** Saves the mirror as it is at this moment. */
export async function backUp(sql: Sql): Promise<void> {
  await sql`select sim.back_up()`;
}

/**
 * Restores what was saved, and ends whoever is in a transaction. Each sequence is `further` numbers ahead of its
 * rows. Returns the number of the last claim.
 */
export async function putBack(sql: Sql, further: number): Promise<number> {
  await sql`
    select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle'`;
  await sql`select sim.restore(${further}), nextval('sim.started')`;
  const [row] = await sql<[{ claim: string }]>`
    select last_value as claim from catalog_internal.claim_numbers`;
  return Number(row.claim);
}
