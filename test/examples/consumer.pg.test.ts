import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, test } from 'vitest';
import { type Change, follow } from '../../examples/consumer.ts';
import { connect } from '../../src/store/connection/db.ts';
import { found, knownSkus, answerAsked, removeByDelta, useStore } from '../store/support.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/process.ts';
import { shopOwner } from './shop.ts';

const store = useStore();

beforeEach(async () => {
  await store.sql`drop schema if exists shop cascade`;
  await knownSkus(store.sql, ['A', 'B', 'C']);
  await answerAsked(
    store.sql,
    found('A', { 8: 80, 9: 90 }, { size_map_size_type: 'US' }),
    found('B', { 9: 90 }),
  );
});

describe('examples/consumer.sql', () => {
  const script = readFileSync(new URL('../../examples/consumer.sql', import.meta.url), 'utf8');

  async function run(as = store.url): Promise<{ offers: string[]; drops: string[] }> {
    // As psql sends it: the text unchanged, on its own connection.
    const own = connect(as, { max: 1 });
    await own.unsafe(script).simple();
    const offers =
      await own`select concat_ws(' ', sku, size, price, size_type) as line from shop.offers order by 1`;
    const drops =
      await own`select concat_ws(' ', sku, size, old_price, new_price) as line from shop.drops order by 1`;
    await own.end({ timeout: 2 });
    const lines = (rows: typeof offers) => rows.map((row) => row['line'] as string);
    return { offers: lines(offers), drops: lines(drops) };
  }

  test('keeps an exact copy of the mirror, and counts only moves of the market as drops', async () => {
    const { sql } = store;
    const first = { offers: ['A 8 80 US', 'A 9 90 US', 'B 9 90'], drops: [] };
    expect(await run()).toEqual(first);
    expect(await run()).toEqual(first);
    await answerAsked(sql, found('A', { 8: 80, 9: 85 }, { size_map_size_type: 'US' }), found('B', { 9: 95 }));
    await answerAsked(
      sql,
      found('A', { 8: 70, 42: 60 }, { size_map_size_type: 'EU' }),
      found('C', { 9: 10 }),
    );
    const then = { offers: ['A 42 60 EU', 'A 8 70 EU', 'B 9 95', 'C 9 10'], drops: ['A 9 90 85'] };
    expect(await run()).toEqual(then);
    expect(await run()).toEqual(then);
    await removeByDelta(sql, 'B');
    expect(await run()).toEqual({ ...then, offers: then.offers.filter((line) => !line.startsWith('B')) });
  });

  test('needs only read access to the mirror, and a schema of its own', async () => {
    const url = await shopOwner(store.sql, store.url);
    const first = await run(url);
    expect(first.offers).toHaveLength(3);
    expect(await run(url)).toEqual(first);
  });

  test('takes in nothing if it fails half-way', async () => {
    await run();
    await answerAsked(store.sql, found('B', { 9: 70 }));
    await store.sql`alter table shop.follower add constraint broken check (false) not valid`;
    await expect(run()).rejects.toThrow('broken');
    await store.sql`alter table shop.follower drop constraint broken`;
    expect((await run()).drops).toEqual(['B 9 90 70']);
    expect((await run()).drops).toEqual(['B 9 90 70']);
  });
});

describe('examples/consumer.ts', () => {
  const PROGRAM = fileURLToPath(new URL('../../examples/consumer.ts', import.meta.url));

  /**
   * Runs the follower, which also writes its own table in the same transaction, until the wanted lines are there.
   */
  async function followed(during: () => Promise<unknown>, wanted: number): Promise<string[]> {
    const own = connect(store.url, { max: 3 });
    await own`create schema if not exists shop`;
    await own`create table if not exists shop.taken (line text)`;
    const stop = new AbortController();
    const apply = async (
      { kind, sku, size, field }: Change,
      tx: Parameters<Parameters<typeof follow>[1]>[1],
    ) => {
      await tx`insert into shop.taken values (${`${kind} ${sku} ${size ?? field}`})`;
    };
    const following = follow(own, apply, stop.signal);
    await eventually(
      async () => {
        const listening = await store.sql`
        select from pg_stat_activity where datname = current_database() and query like 'listen %'`;
        return listening.length > 0;
      },
      { what: 'the follower to listen' },
    );
    await during();
    const taken = () => store.sql<{ line: string }[]>`select line from shop.taken`;
    await eventually(async () => (await taken()).length >= wanted, { what: 'the changes to be taken' });
    stop.abort();
    await following;
    await own.end({ timeout: 2 });
    return (await taken()).map(({ line }) => line);
  }

  test('is woken by changes, and takes each exactly once across restarts, even those made meanwhile', async () => {
    const { sql } = store;
    const first = ['product B name', 'price B 9'];
    expect(await followed(() => answerAsked(sql, found('B', { 9: 91 }, { name: 'N' })), 2)).toEqual(first);
    await answerAsked(sql, found('B', { 9: 92 }, { name: 'N' }));
    const all = [...first, 'price B 9', 'product A size_map_size_type'];
    const again = () => answerAsked(sql, found('A', { 8: 80, 9: 90 }, { size_map_size_type: 'EU' }));
    expect(await followed(again, 4)).toEqual(all);
  });

  test('runs as a program by whatever path, with a role that owns only a schema', async () => {
    const url = await shopOwner(store.sql, store.url);
    const link = join(await temporaryFolder(), 'follower.ts');
    symlinkSync(PROGRAM, link);
    const program = spawn(process.execPath, [link], { env: { ...process.env, DATABASE_URL: url } });
    const ended = once(program, 'close');
    let said = '';
    for (const output of [program.stdout, program.stderr])
      output.on('data', (part) => (said += String(part)));
    await eventually(
      async () => {
        expect(said).toBe('');
        const [table] = await store.sql`select to_regclass('shop.position') as name`;
        expect(table).not.toEqual({ name: null });
        expect(await store.sql`select from shop.position`).toHaveLength(1);
      },
      { what: 'the position' },
    );
    await answerAsked(store.sql, found('B', { 9: 91 }));
    await eventually(() => expect(said).toMatch(/^\{"position":"\d+","kind":"price","sku":"B",.*\}$/m), {
      what: 'the change',
    });
    program.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  });

  test('runs on each Node.js that runs TypeScript, so without import.meta.main (undefined before 24.2)', () => {
    expect(readFileSync(PROGRAM, 'utf8')).not.toContain('import.meta.main');
  });
});
