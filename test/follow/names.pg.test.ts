import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { readOwnSession } from '../../src/store/connection/own-session.ts';
import { forgetFollower, readFollowers } from '../../src/store/history/follower-list.ts';
import { NameHeld } from '../../src/store/history/follower-name.ts';
import { MAX_FOLLOWERS, takeName } from '../../src/store/history/followers.ts';
import { useStore } from '../store/support.ts';
import { actingLogins } from '../support/acting-login.ts';
import { eventually } from '../support/eventually.ts';
import { movePrices, positionNow } from './changes.ts';
import { answer, holding, OK, only, options, run, session, taken } from './session.ts';

const store = useStore();

describe('a name', () => {
  beforeEach(async () => {
    await movePrices(store.sql, 3);
  });

  test('is held by one process at a time, and free when its session has ended', async () => {
    const [one, two] = [await session(store), await session(store)];
    const mine = await taken(one);
    const other = await holding(two);
    expect(await takeName(two, other, options())).toEqual({ heldBy: 'a test' });
    expect((await only(store)).heldBy).toBe('a test');
    // After a lost session its own process gets it back, whatever Postgres still shows.
    expect(await takeName(two, await holding(two, mine.holder), options())).toHaveProperty('position');
    await two.end();
    const three = await session(store);
    await eventually(async () => 'position' in (await takeName(three, await holding(three), options())));
    await expect(mine.held.sending(5n, mine.place)).rejects.toMatchObject({ kind: 'taken' });
    await expect(mine.held.delivered(5n, null, null)).rejects.toMatchObject({ kind: 'taken' });
  });

  test('is held by one session, even if a restored database gave its number to another process too', async () => {
    const [one, two] = [await session(store), await session(store)];
    const mine = await taken(one);
    const { number } = mine.holder;
    const other = { number, sessions: [await readOwnSession(two)] };
    expect(await takeName(two, other, options())).toEqual({ heldBy: 'a test' });
    await mine.held.delivered(mine.place.position, null, null);
    // It has waited in vain for its database, and takes the name once nobody holds it.
    await mine.held.release();
    expect(await takeName(two, other, options())).toHaveProperty('position');
    await expect(mine.held.sending(5n, mine.place)).rejects.toMatchObject({ kind: 'taken' });
    await expect(mine.held.delivered(5n, null, null)).rejects.toMatchObject({ kind: 'taken' });
    await mine.held.release();
    await new NameHeld(two, 'shop', other).delivered(mine.place.position, null, null);
  });

  test('is held by a login that acts as another role, whether or not others can see when its session began', async () => {
    await using acting = await actingLogins(store.sql, store.url);
    const actor = await session({ url: await acting.login() });
    await taken(actor);
    for (const url of [await acting.login(), store.url]) {
      const other = await session({ url });
      expect(await takeName(other, await holding(other), options())).toEqual({ heldBy: 'a test' });
      await other.end();
    }
    await actor.end();
  });

  test('that several processes want at once is given to one', async () => {
    const clients = await Promise.all(Array.from({ length: 5 }, () => session(store)));
    const results = await Promise.all(
      clients.map(async (client) => takeName(client, await holding(client), options())),
    );
    expect(results.filter((result) => 'position' in result)).toHaveLength(1);
  });

  test('keeps its position; --from applies only to a new name or with a reset', async () => {
    const client = await session(store);
    const now = await positionNow(store.sql);
    const { place: first, holder } = await taken(client);
    expect(first.position).toBe(now);
    const { place } = await taken(client, { from: 'oldest' }, holder);
    expect(place.position).toBe(now);
    const reset = await taken(client, { from: now - 2n, reset: true }, holder);
    expect(reset.place).toEqual({
      position: now - 2n,
      afterSku: null,
      sendingTo: null,
      failures: 0,
      refusals: 0,
    });
    const copied = await taken(client, { from: 'start', reset: true }, holder);
    expect(copied.place).toMatchObject({ position: now, afterSku: '' });
  });

  test('that starts again with a copy loses its old dead letters; otherwise it keeps them', async () => {
    const client = await session(store);
    const { place, held, holder } = await taken(client);
    await movePrices(store.sql, 1);
    await run(client, held, place, () => answer('refused', 422), { attempts: 1 });
    const letters = async () =>
      (await readFollowers(store.sql)).find(({ name }) => name === 'shop')?.deadLetters;
    await taken(client, { from: 'start' }, holder);
    await taken(client, { from: 'oldest', reset: true }, holder);
    expect(await letters()).toBe(1);
    const other = await taken(client, { name: 'other', from: 'start', reset: true });
    await other.held.release();
    expect(await letters()).toBe(1);
    await taken(client, { from: 'start', reset: true }, holder);
    expect(await letters()).toBe(0);
  });

  test('cannot start at a position of another history', async () => {
    const client = await session(store);
    const beyond = (await positionNow(store.sql)) + 5n;
    await expect(taken(client, { from: beyond })).rejects.toMatchObject({ kind: 'position-lost' });
    expect(await readFollowers(store.sql)).toEqual([]);
  });

  test('whose position is lost is reported as such, and hides no other name', async () => {
    const client = await session(store);
    const { place, held } = await taken(client);
    await taken(client, { name: 'zoo', from: place.position - 1n });
    await store.sql`update catalog_internal.followers set position = position + 1000 where name = 'shop'`;
    const lost = { ...place, position: place.position + 1000n };
    await expect(run(client, held, lost, () => OK)).rejects.toMatchObject({
      kind: 'position-lost',
      hint: expect.stringContaining('--reset'),
    });
    expect(await readFollowers(store.sql)).toMatchObject([
      { name: 'shop', lost: true, behind: null, behindSeconds: null },
      { name: 'zoo', lost: false, behind: 1, behindSeconds: expect.any(Number) },
    ]);
  });

  test('that copies is behind by the time since its last piece, however old the waiting changes are', async () => {
    const client = await session(store);
    await taken(client, { from: 'start' });
    await movePrices(store.sql, 3);
    await store.sql`update catalog.price_history set observed_at = observed_at - interval '2 hours'`;
    const before = await only(store);
    expect(before).toMatchObject({ afterSku: '', behind: 3 });
    expect(before.behindSeconds).toBeLessThan(60);
    await store.sql`update catalog_internal.followers set updated_at = now() - interval '1 hour'`;
    expect((await only(store)).behindSeconds).toBeGreaterThan(3500);
    await store.sql`update catalog_internal.followers set after_sku = null, updated_at = now()`;
    expect((await only(store)).behindSeconds).toBeGreaterThan(7000);
  });

  test("is not held by another role's session that reuses a process id from before the server's start", async () => {
    const role = `stranger_${randomBytes(4).toString('hex')}`;
    const { sql } = store;
    await sql.unsafe(`create role ${role}`);
    await sql.unsafe(
      `grant usage on schema catalog_internal to ${role}; grant execute on all functions in schema catalog_internal to ${role}`,
    );
    const other = await session(store);
    const [{ pid }] = (await other.query<{ pid: number }>('select pg_backend_pid() as pid')).rows as [
      { pid: number },
    ];
    const lives = await sql.begin(async (tx) => {
      await tx.unsafe(`set local role ${role}`);
      const [row] = await tx<[{ before: boolean; since: boolean }]>`
        select catalog_internal.session_lives(${pid}, pg_postmaster_start_time() - interval '1 s') as before,
          catalog_internal.session_lives(${pid}, pg_postmaster_start_time() + interval '1 s') as since`;
      return row;
    });
    await sql.unsafe(`drop owned by ${role}; drop role ${role}`);
    expect(lives).toEqual({ before: false, since: true });
  });

  test('is one of at most fifty, and can be forgotten', async () => {
    const client = await session(store);
    for (let n = 0; n < MAX_FOLLOWERS; n += 1) await taken(client, { name: `n${n}` });
    await expect(taken(client, { name: 'more' })).rejects.toMatchObject({ kind: 'too-many' });
    expect(await takeName(client, await holding(client), options({ name: 'n7' }))).toHaveProperty('heldBy');
    expect(await forgetFollower(store.sql, 'n7')).toBe(0);
    expect(await forgetFollower(store.sql, 'n7')).toBeNull();
    await taken(client, { name: 'more' });
  });
});
