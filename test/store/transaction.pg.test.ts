import { beforeEach, describe, expect, test } from 'vitest';
import { transaction } from '../../src/store/connection/db.ts';
import { sqlState } from '../../src/store/connection/sql-errors.ts';
import { useStore } from './support.ts';

/*
 * What a transaction sends last goes with its COMMIT: if any of it fails, the whole fails, and the caller learns
 * of it.
 */

const store = useStore();

beforeEach(async () => {
  await store.sql`drop table if exists public.notes`;
  await store.sql`create table public.notes (note text primary key)`;
});

const notes = async () =>
  (await store.sql<{ note: string }[]>`select note from public.notes`).map(({ note }) => note);

describe('statements sent last', () => {
  test('are all committed', async () => {
    const result = await transaction(store.sql, async (tx, last) => {
      last(
        Promise.all([tx`insert into public.notes values ('a')`, tx`insert into public.notes values ('b')`]),
      );
      return 'done';
    });
    expect(result).toBe('done');
    expect(await notes()).toEqual(['a', 'b']);
  });

  test('and that fail commit nothing, and the caller gets their failure', async () => {
    const failed = transaction(store.sql, async (tx, last) => {
      await tx`insert into public.notes values ('first')`;
      last(
        Promise.all([
          tx`insert into public.notes values ('a')`,
          tx`insert into public.notes values ('a')`,
          tx`insert into public.notes values ('b')`,
        ]),
      );
    });
    await expect(failed).rejects.toSatisfy((error) => sqlState(error) === '23505');
    expect(await notes()).toEqual([]);
  });

  test("and that are a conflict's victim are run again with all before them", async () => {
    let runs = 0;
    const result = await transaction(store.sql, async (tx, last) => {
      runs += 1;
      await tx`insert into public.notes values (${`run ${runs}`})`;
      if (runs === 1)
        last(
          tx`do $$ begin raise exception 'one of two had to go' using errcode = '40001'; end $$`.execute(),
        );
      return runs;
    });
    expect(result).toBe(2);
    expect(await notes()).toEqual(['run 2']);
  });

  test('on a connection that is cut are reported as lost', async () => {
    const cut = transaction(store.sql, async (tx, last) => {
      last(
        Promise.all([
          tx`insert into public.notes values ('a')`,
          tx`select pg_terminate_backend(pg_backend_pid())`,
        ]),
      );
    });
    await expect(cut).rejects.toThrow(/CONNECTION_CLOSED|ECONNRESET|terminating connection/u);
    expect(await notes()).toEqual([]);
  });
});
