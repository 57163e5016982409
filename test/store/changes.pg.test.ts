import { array, assert, asyncProperty, boolean, constantFrom, integer, nat, record } from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { writeChanges } from '../../src/store/history/changes.ts';
import {
  claimAll,
  found,
  knownSkus,
  answerAsked,
  REFRESH,
  mark,
  removeByDelta,
  useStore,
} from './support.ts';

const store = useStore();

interface Change {
  readonly position: string;
  readonly kind: string;
  readonly sku: string;
  readonly what: string;
  readonly meaning: boolean;
}

async function changesAfter(position: string, most = 1000): Promise<Change[]> {
  return await store.sql<Change[]>`
    select position, kind, sku, coalesce(size, field) || ': ' || coalesce(old_price::text, old_value, '–')
      || ' → ' || coalesce(new_price::text, new_value, '–') as what, meaning_changed as meaning
    from catalog.changes(${position}, ${most})`;
}

async function positionNow(): Promise<string> {
  const [row] = await store.sql<[{ position: string }]>`select catalog.changes_position() as position`;
  return row.position;
}

/** A transaction of the model: what it writes, in what way, and how it ends. */
const anyWriter = record({
  rows: integer({ min: 1, max: 3 }),
  way: constantFrom('prices', 'products', 'both', 'as the version before', 'twice'),
  commits: boolean(),
});

type Writer = { rows: number; way: string; commits: boolean };

async function write(tx: Parameters<typeof writeChanges>[0], name: string, { rows, way }: Writer) {
  const some = Array.from({ length: rows }, (_, n) => `${name}.${n}`);
  const moves = some.map((sku) => ({ sku, size: '9', oldPrice: 1, newPrice: 2 }));
  const fields = some.map((sku) => ({ sku, field: 'name' as const, oldValue: 'a', newValue: 'b' }));
  if (way === 'as the version before') {
    await tx`
      insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
      select sku, '9', 1, 2, now() from unnest(${some}::text[]) s(sku)`;
    return;
  }
  await writeChanges(
    tx,
    { moves: way === 'products' ? [] : moves, fields: way === 'prices' ? [] : fields },
    null,
  );
  if (way === 'twice') await writeChanges(tx, { moves, fields: [] }, null);
}

const rowsOf = ({ rows, way }: Writer) => rows * ({ both: 2, twice: 3 }[way] ?? 1);

/** Runs writers with a connection each. A step ends when it is done, or waits for another's lock. */
async function play(
  pool: Sql,
  writers: readonly Writer[],
  turns: readonly number[],
  poll: () => Promise<void>,
) {
  const steps = await Promise.all(
    writers.map(async (writer, n) => {
      const tx = await pool.reserve();
      const [{ pid }] = await tx<[{ pid: number }]>`select pg_backend_pid() as pid`;
      const todo: (() => Promise<unknown>)[] = [
        () => tx`begin`,
        () => write(tx as never, `w${n}`, writer),
        () => (writer.commits ? tx`commit` : tx`rollback`),
      ];
      return { tx, pid, todo, busy: Promise.resolve<unknown>(null), idle: true };
    }),
  );
  const left = () => steps.filter(({ todo }) => todo.length > 0);
  for (let turn = 0; left().length > 0; turn += 1) {
    const step = left()[(turns[turn % turns.length] ?? 0) % left().length]!;
    const action = step.todo.shift()!;
    step.idle = false;
    step.busy = step.busy
      .then(() => action())
      .finally(() => {
        step.idle = true;
      });
    const waits = async () => {
      const locks = await store.sql`select from pg_locks where pid = ${step.pid} and not granted`;
      return locks.length > 0;
    };
    while (!step.idle && !(await waits()));
    await poll();
  }
  await Promise.all(steps.map(({ busy }) => busy));
  for (const { tx } of steps) tx.release();
}

describe('a reader that remembers one position', () => {
  let pool: Sql;
  beforeAll(() => {
    pool = connect(store.url, { max: 5 });
  });
  afterAll(() => pool.end({ timeout: 2 }));

  test('sees each committed row once, in order, in whatever order writers start and commit', async () => {
    await assert(
      asyncProperty(
        array(anyWriter, { minLength: 2, maxLength: 5 }),
        array(nat(59), { minLength: 15, maxLength: 15 }),
        integer({ min: 1, max: 4 }),
        async (writers, turns, most) => {
          await store.sql`delete from catalog.price_history`;
          await store.sql`delete from catalog.product_history`;
          const seen: Change[] = [];
          const poll = async () => {
            const rows = await changesAfter(seen.at(-1)?.position ?? '0', most);
            seen.push(...rows);
            return rows.length;
          };
          await play(pool, writers, turns, async () => {
            await poll();
          });
          while ((await poll()) > 0);
          const committed = await store.sql<{ position: string }[]>`
            select id as position from catalog.price_history union all select id from catalog.product_history order by 1`;
          expect(seen.map(({ position }) => position)).toEqual(committed.map(({ position }) => position));
          expect(seen).toHaveLength(
            writers.filter(({ commits }) => commits).reduce((sum, writer) => sum + rowsOf(writer), 0),
          );
        },
      ),
      {
        numRuns: 40,
        examples: [
          [
            [
              { rows: 1, way: 'as the version before', commits: true },
              { rows: 1, way: 'both', commits: true },
            ],
            [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            2,
          ],
        ],
      },
    );
  });

  test('is told if its position no longer belongs to this database, and what a position must be', async () => {
    const refused = (position: string | null, most = 1) =>
      store.sql`select * from catalog.changes(${position}::bigint, ${most})`.catch((error: unknown) => error);
    expect(await refused('999999999999999')).toMatchObject({
      code: 'CM001',
      hint: expect.stringContaining('changes_snapshot'),
    });
    expect(await refused(null)).toMatchObject({ code: '22023' });
    expect(await refused('0', 0)).toMatchObject({ code: '22023' });
  });

  test('gets what commits after its position, including what was under way when it took it', async () => {
    await writing(store.sql, 'before');
    const tx = await pool.reserve();
    await tx`begin`;
    await writing(tx as never, 'under way');
    const position = await positionNow();
    await tx`commit`;
    tx.release();
    await writing(store.sql, 'after');
    expect((await changesAfter(position)).map(({ sku }) => sku)).toEqual(['under way', 'after']);
  });

  async function writing(sql: Sql, sku: string) {
    await sql`insert into catalog.price_history (sku, size, observed_at) values (${sku}, '9', now())`;
  }
});

describe('the changes of an answer', () => {
  test('begin with a corrected size_type, and mark what is no move of the market', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A', 'B', 'C']);
    const us = { size_map_size_type: 'US', name: 'N' };
    await answerAsked(
      sql,
      found('A', { 8: 80, 9: 90 }, us),
      found('B', { 9: 90 }, us),
      found('C', { 9: 90 }, us),
    );
    const position = await positionNow();
    const eu = found('A', { 9: 90, 42: 80 }, { size_map_size_type: 'EU', name: 'N' });
    await answerAsked(sql, eu, found('B', { 9: 91 }, us), found('C', { 9: 90 }, us));
    await answerAsked(sql, eu);
    await answerAsked(sql, found('A', { 9: 95, 42: 80 }, { size_map_size_type: 'EU', name: 'M' }));
    await removeByDelta(sql, 'B');
    const rows = await changesAfter(position);
    expect(
      rows.map(({ kind, sku, what, meaning }) => `${kind} ${sku} ${what}${meaning ? ' (meaning)' : ''}`),
    ).toEqual([
      'product A size_map_size_type: US → EU (meaning)',
      'price A 42: – → 80 (meaning)',
      'price A 8: 80 → – (meaning)',
      'price B 9: 90 → 91',
      'product A name: N → M',
      'price A 9: 90 → 95',
      'sku B state: priced → removed',
      'sku B in_manifest: true → false',
      'price B 9: 91 → –',
    ]);
  });

  test('report sizes that go and come back as market moves, whatever the empty size_map leaves out', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    const us = { size_map_size_type: 'US', name: 'N', product: '{"name":"N","colour":"red"}' };
    await answerAsked(sql, found('A', { 9: 1000, 10: 2000 }, us));
    await answerAsked(sql, found('A', { 9: 1500, 10: 2000 }, us));
    const position = await positionNow();
    const moves = async () =>
      (await changesAfter(position)).map(({ kind, what, meaning }) => `${kind} ${what}${meaning ? '!' : ''}`);
    await answerAsked(sql, found('A', {}));
    expect(await moves()).toEqual(['price 10: 2000 → –', 'price 9: 1500 → –']);
    await answerAsked(sql, found('A', { 9: 1500, 10: 2000 }, us));
    await answerAsked(sql, found('A', { 9: 1400, 10: 2000 }, { name: 'N', product: '{"colour":"blue"}' }));
    expect((await moves()).slice(2)).toEqual([
      'price 10: – → 2000',
      'price 9: – → 1500',
      expect.stringContaining('product product: '),
      'price 9: 1500 → 1400',
    ]);
    const [row] = await sql`select name, size_map_size_type as "sizeType", product from catalog.products`;
    expect(row).toEqual({ name: 'N', sizeType: 'US', product: { name: 'N', colour: 'blue' } });
    // A real move from before still counts as a market move.
    const movers = await sql<{ size: string }[]>`select size from catalog.movers('1 hour') where sku = 'A'`;
    expect(movers.map(({ size }) => size)).toContain('9');
  });

  test('do not include a correction if the size_type becomes known for the first time', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await answerAsked(sql, found('A', { 9: 1000 }));
    const position = await positionNow();
    const claimed = found('A', { 9: 1100 }, { size_map_size_type: 'US' });
    await mark(sql, ['A']);
    const applied = await applyAnswer(sql, await claimAll(sql), [claimed], REFRESH);
    expect(applied.sizeTypeChanges).toEqual([]);
    expect((await changesAfter(position)).map(({ meaning }) => meaning)).toEqual([false, false]);
    const movers = await sql<{ size: string }[]>`select size from catalog.movers('1 hour') where sku = 'A'`;
    expect(movers).toEqual([{ size: '9' }]);
  });

  test('are notified once per transaction, with the newest position; no changes, no notification', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A', 'B']);
    const heard: string[] = [];
    const ended = Promise.withResolvers<void>();
    const listener = connect(store.url, { max: 1 });
    await listener.listen('catalog_changes', (payload) => {
      heard.push(payload);
      if (payload === 'end') ended.resolve();
    });
    await answerAsked(sql, found('A', { 9: 90 }, { name: 'N' }), found('B', { 9: 90 }));
    const known = await positionNow();
    await answerAsked(sql, found('A', { 9: 91 }, { name: 'M' }), found('B', { 9: 92 }));
    const first = await positionNow();
    await answerAsked(sql, found('A', { 9: 91 }, { name: 'M' }), found('B', { 9: 92 }));
    await removeByDelta(sql, 'B');
    const second = await positionNow();
    await sql`select pg_notify('catalog_changes', 'end')`;
    await ended.promise;
    expect(heard).toEqual([known, first, second, 'end']);
    await listener.end({ timeout: 2 });
  });
});

test.each(['answer', 'delta'])(
  'an answer and a delta that count in one row do not deadlock, with the %s first to wait',
  async (first) => {
    const pool = connect(store.url, { max: 4 });
    await knownSkus(pool, ['seen', 'removed', 'reported']);
    await answerAsked(pool, found('seen', { 9: 1 }), found('removed', { 9: 1 }), found('reported', { 9: 1 }));
    await mark(pool, ['seen'], 'sweep');
    await applyAnswer(pool, await claimAll(pool), [found('seen', { 9: 2 })], REFRESH);
    await pool`update catalog_internal.sync set snapshot_id = '0'`;
    const nothing = { changed: [], removed: [], nowLive: [] };
    await applyDelta(pool, { ...nothing, since: '0', toSnapshot: '1', changed: ['reported'] });
    const claim = await claimAll(pool);
    const both: Record<string, () => Promise<unknown>> = {
      answer: () => applyAnswer(pool, claim, [found('reported', { 9: 2 })], REFRESH),
      delta: () =>
        applyDelta(pool, {
          since: '1',
          toSnapshot: '2',
          changed: ['seen'],
          removed: ['removed'],
          nowLive: [],
        }),
    };
    const waiting = async () => {
      const [row] = await store.sql`
        select count(*)::int as n from pg_locks l join pg_stat_activity a using (pid)
        where not granted and a.datname = current_database()`;
      return row?.['n'] as number;
    };
    const under: Promise<unknown>[] = [];
    await pool.begin(async (tx) => {
      await tx`select catalog_internal.lock_changes()`;
      for (const name of [first, first === 'answer' ? 'delta' : 'answer']) {
        under.push(both[name]!());
        while ((await waiting()) < under.length);
      }
    });
    await Promise.all(under);
    // A backend's counts become visible when it ends.
    await pool.end({ timeout: 5 });
    const [counted] = await store.sql`
      select deadlocks::int, reports_confirmed::int as confirmed, moves_seen_first::int as seen
      from pg_stat_database, catalog.delta_audit where datname = current_database()`;
    expect(counted).toEqual({ deadlocks: 0, confirmed: 1, seen: 1 });
  },
);
