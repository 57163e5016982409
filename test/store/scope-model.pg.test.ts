import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { type Claim, returnClaim } from '../../src/store/ledger/due.ts';
import { refreshAll, refreshSkus } from '../../src/store/sellers/refresh.ts';
import { readScope, storeScopeMode } from '../../src/store/sellers/scope.ts';
import { forgetUnknown } from '../../src/store/sellers/watchlist.ts';
import { runs } from '../support/soak.ts';
import { baseline, line } from './manifest.ts';
import { SKUS, step, type Step } from './scope-steps.ts';
import { claimInScope, sortAll } from './scoping.ts';
import { empty, found, passHours, REFRESH, useStore } from './support.ts';
import { watchNow } from './watching.ts';

const store = useStore();
interface Seen {
  readonly sku: string;
  readonly state: string;
  readonly reason: string;
  readonly inside: boolean;
  readonly isDue: boolean;
  readonly brand: string | null;
  readonly model: string | null;
  readonly category: string | null;
  readonly known: boolean;
}

/** One mirror, and what the partner would answer. */
class World {
  readonly names = new Map<string, string | null>(
    SKUS.map((sku, n) => [sku, ['Nike', 'Puma', null][n % 3] ?? null]),
  );
  /** SKUs that were reported, or appeared, and have not been answered since. */
  readonly reported = new Set<string>();
  /** Those that may still be asked for their metadata. */
  readonly unread = new Set<string>();
  /** Those that the partner has reported since the claim. */
  readonly #since = new Set<string>();
  /** Answered 0009, and not reported since: asking once more would bring no metadata either. */
  readonly #nowhere = new Set<string>();
  claim: Claim | null = null;
  manifests = 0;

  async see(): Promise<Seen[]> {
    return await store.sql<Seen[]>`
      select d.sku, s.state, d.reason, d.outside_due_at is null as inside, d.due_at <= now() as "isDue", p.brand, p.model, p.category,
        p.sku is not null as known
      from catalog_internal.due d join catalog.skus s using (sku) left join catalog.products p using (sku) order by d.sku`;
  }

  #appear(sku: string): void {
    this.reported.add(sku);
    this.unread.add(sku);
  }

  #report(sku: string): void {
    this.#appear(sku);
    this.#since.add(sku);
    this.#nowhere.delete(sku);
  }

  #read(sku: string): void {
    this.reported.delete(sku);
    this.unread.delete(sku);
  }

  /** What the rules say, from the sellers' own table. */
  async placeOf({ sku, brand, model, category, known }: Seen): Promise<'in' | 'out' | 'unknown'> {
    const [{ scoped }] = await store.sql<[{ scoped: boolean }]>`select scoped from catalog_internal.scoping`;
    if (!scoped) return 'in';
    const rules = await store.sql<
      { kind: string; value: string; include: boolean }[]
    >`select kind, value, include from catalog.scope`;
    const same = (name: string | null, value: string) =>
      name !== null && name.trim().toLowerCase() === value.trim().toLowerCase();
    const own = rules.find(({ kind, value }) => kind === 'sku' && value === sku);
    if (own !== undefined) return own.include ? 'in' : 'out';
    const matching = rules.filter(
      ({ kind, value }) =>
        (kind === 'prefix' && sku.startsWith(value)) ||
        (kind === 'brand' && same(brand, value)) ||
        (kind === 'model' && same(model, value)) ||
        (kind === 'category' && same(category, value)),
    );
    if (matching.some(({ include }) => !include)) return 'out';
    if (matching.length > 0) return 'in';
    const byMetadata = rules.some(
      ({ kind, include }) => include && ['brand', 'model', 'category'].includes(kind),
    );
    return byMetadata && !known ? 'unknown' : 'out';
  }

  /** Nothing is asked for that is out of scope, but for the one request that a rule needs. */
  async take(): Promise<void> {
    await readScope(store.sql, { everything: false, pieces: 1 });
    this.claim = await claimInScope(store.sql);
    this.#since.clear();
    const claimed = new Set(this.claim?.skus.map(({ sku }) => sku));
    for (const seen of await this.see()) {
      if (!claimed.has(seen.sku)) continue;
      const place = await this.placeOf(seen);
      ok(place !== 'out', `${seen.sku} is asked for`);
      if (place === 'unknown') ok(this.unread.has(seen.sku), `${seen.sku} was asked for already`);
    }
  }

  async answer(kinds: readonly string[]): Promise<void> {
    const { claim } = this;
    if (claim === null) return;
    const results = claim.skus.map(({ sku }, n): SkuResult => {
      const kind = kinds[n % kinds.length];
      const name = this.names.get(sku) ?? null;
      if (kind === 'record') return found(sku, { 9: 90 }, { brand: name, model: 'M', category: name });
      if (kind === 'not_found') return { sku, kind };
      return { sku, kind: kind === 'deferred' ? 'deferred' : 'error', waitMs: 3_600_000 };
    });
    await applyAnswer(store.sql, claim, results, REFRESH);
    const generations = new Map(
      (
        await store.sql<
          { sku: string; generation: number }[]
        >`select sku, generation from catalog_internal.due`
      ).map(({ sku, generation }) => [sku, generation]),
    );
    for (const [n, { sku, generation }] of claim.skus.entries())
      if (['record', 'not_found'].includes(results[n]?.kind ?? '') && generations.get(sku) === generation)
        this.#read(sku);
    for (const { sku, kind } of results)
      if (kind === 'not_found' && !this.#since.has(sku)) this.#nowhere.add(sku);
    this.claim = null;
  }

  /** How each SKU stands once everything is sorted; what was reported of those in scope is due. */
  async check(): Promise<void> {
    await sortAll(store.sql);
    for (const seen of await this.see()) {
      const place = await this.placeOf(seen);
      const where = `${seen.sku} (${seen.state}, ${seen.reason})`;
      strictEqual(seen.inside, place === 'in', where);
      if (place === 'out') strictEqual(seen.isDue, false, where);
      const isAsked = place === 'in' || (place === 'unknown' && !this.#nowhere.has(seen.sku));
      if (isAsked && this.reported.has(seen.sku)) ok(seen.isDue, `${where} is forgotten`);
    }
  }

  async do(step: Step): Promise<void> {
    const { sql } = store;
    if (step.do === 'rule' && 'include' in step) {
      const { kind, value } = step.rule;
      if (kind !== 'sku' && kind !== 'prefix')
        await sql`delete from catalog.scope where kind = ${kind} and lower(btrim(value)) = ${value.trim().toLowerCase()} and value <> ${value}`;
      await sql`
        insert into catalog.scope (kind, value, include) values (${kind}, ${value}, ${step.include})
        on conflict (kind, value) do update set include = excluded.include`;
    } else if (step.do === 'unrule' && 'rule' in step)
      await sql`delete from catalog.scope where kind = ${step.rule.kind} and value = ${step.rule.value}`;
    else if (step.do === 'mode' && 'scoped' in step) await storeScopeMode(sql, step.scoped);
    else if (step.do === 'answer' && 'kinds' in step) {
      if (this.claim === null) await this.take();
      else await this.answer(step.kinds);
    } else if (step.do === 'turn' && 'name' in step) this.names.set(step.sku, step.name);
    else if (step.do === 'delta' && 'changed' in step) await this.delta(step);
    else if (step.do === 'manifest' && 'hash' in step) await this.manifest(step.skus, step.hash);
    else if (step.do === 'watch' && 'skus' in step) {
      await sql`delete from catalog.watchlist`;
      await watchNow(sql, ...step.skus);
    } else if (step.do === 'refresh' && 'skus' in step) await refreshSkus(sql, step.skus);
    else await this.other(step.do);
    // What is new to the mirror has not been asked for.
    for (const { sku, state } of await this.see()) if (state === 'pending') this.#appear(sku);
  }

  async other(what: string): Promise<void> {
    const { sql } = store;
    if (what === 'truncate') await sql`truncate catalog.scope`;
    else if (what === 'read') await readScope(sql, { everything: true, pieces: 1 });
    else if (what === 'sweep') await passHours(sql, 50);
    else if (what === 'all') await refreshAll(sql, 'prices');
    else if (what === 'forget') await forgetUnknown(sql, 10);
    else if (what === 'claim' && this.claim !== null) {
      await returnClaim(
        sql,
        this.claim.number,
        this.claim.skus.map(({ sku }) => sku),
      );
      this.claim = null;
    } else if (what === 'pass')
      await sql`update catalog_internal.due set held_until = null where claim is null`;
  }

  async delta({
    changed,
    live,
    removed,
  }: {
    changed: string[];
    live: string[];
    removed: string[];
  }): Promise<void> {
    await store.sql`update catalog_internal.sync set snapshot_id = 'token', chain_broken_at = null`;
    const gone = new Set(removed);
    const stays = (sku: string) => !gone.has(sku);
    const nowLive = live.filter(stays);
    // That they are still live is no news (partner rule 4.2.7).
    const stillLive = new Set(
      (
        await store.sql<{ sku: string }[]>`
          select sku from catalog.skus
          where sku = any(${nowLive}) and in_manifest and price_source = 'live' and state in ('priced', 'pending')`
      ).map(({ sku }) => sku),
    );
    await applyDelta(store.sql, {
      since: 'token',
      toSnapshot: 'token',
      changed: [...changed.filter(stays), ...nowLive],
      nowLive,
      removed,
    });
    for (const sku of [...changed, ...live]) if (stays(sku) && !stillLive.has(sku)) this.#report(sku);
    for (const sku of removed) this.reported.delete(sku);
  }

  async manifest(skus: readonly string[], hash: string): Promise<void> {
    const before = new Map((await this.see()).map(({ sku, reason }) => [sku, reason]));
    this.manifests += 1;
    const generations = async () =>
      new Map(
        (
          await store.sql<
            { sku: string; generation: number }[]
          >`select sku, generation from catalog_internal.due`
        ).map(({ sku, generation }) => [sku, generation]),
      );
    const earlier = await generations();
    await baseline(
      store.url,
      skus.map((sku) => line(sku, { hash })),
      { token: { snapshotId: `m${this.manifests}` } },
    );
    for (const [sku, generation] of await generations())
      if (skus.includes(sku) && (earlier.get(sku) !== generation || !before.has(sku))) this.#report(sku);
  }
}

test('whatever happens in whatever order, only what is in scope is asked for, and nothing of it is forgotten', async () => {
  await store.sql`
    alter table catalog_internal.due add constraint stands check (
      case when outside_due_at is null then lane > 0 and reason <> 'scope'
        when reason = 'scope' then lane > 0 and due_at < 'infinity' else lane = 0 and due_at = 'infinity' end)`;
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        await empty(store.sql);
        const world = new World();
        await storeScopeMode(store.sql, true);
        await world.manifest(SKUS.slice(0, 5), 'h1');
        for (const each of steps) await world.do(each);
        await world.check();
      }),
      { numRuns: runs(12, 100) },
    );
  } finally {
    await store.sql`alter table catalog_internal.due drop constraint stands`;
  }
});

test('a SKU that is reported as live again is asked when it would have been', async () => {
  await empty(store.sql);
  const world = new World();
  await storeScopeMode(store.sql, true);
  await world.manifest(SKUS.slice(0, 5), 'h1');
  await world.do({ do: 'rule', rule: { kind: 'prefix', value: '' }, include: true });
  await world.do({ do: 'delta', changed: ['A1'], live: ['D'], removed: [] });
  await world.do({ do: 'answer', kinds: ['record'] });
  await world.do({ do: 'answer', kinds: ['record'] });
  await world.do({ do: 'delta', changed: ['A1'], live: ['D'], removed: [] });
  await world.check();
});

test('a SKU that was removed outside and is listed again is asked for its metadata, and stays asked', async () => {
  await empty(store.sql);
  const world = new World();
  await storeScopeMode(store.sql, true);
  await world.manifest(['A1', 'D'], 'h1');
  await world.do({ do: 'delta', changed: ['A1'], live: ['A1'], removed: ['D'] });
  await world.do({ do: 'rule', rule: { kind: 'brand', value: 'Nike' }, include: true });
  await world.do({ do: 'manifest', skus: ['D'], hash: 'h1' });
  await world.do({ do: 'answer', kinds: ['record'] });
  await world.check();
});

test('a SKU that was removed outside, watched there, and is then reported is asked for its metadata', async () => {
  await empty(store.sql);
  const world = new World();
  await storeScopeMode(store.sql, true);
  await world.manifest(SKUS.slice(0, 5), 'h1');
  await world.do({ do: 'delta', changed: ['A1'], live: ['A1'], removed: ['B1'] });
  await world.do({ do: 'rule', rule: { kind: 'brand', value: 'Nike' }, include: true });
  await world.do({ do: 'watch', skus: ['B1'] });
  await world.do({ do: 'delta', changed: ['B1'], live: [], removed: [] });
  await world.check();
});

test('a SKU that is 0009 while it is watched is not asked for its metadata, as nobody has reported it since', async () => {
  await empty(store.sql);
  const world = new World();
  await storeScopeMode(store.sql, true);
  await world.manifest(SKUS.slice(0, 5), 'h1');
  await world.do({ do: 'rule', rule: { kind: 'brand', value: 'Nike' }, include: true });
  await world.do({ do: 'mode', scoped: false });
  await world.do({ do: 'answer', kinds: [] });
  await world.do({ do: 'watch', skus: ['B1'] });
  await world.do({ do: 'answer', kinds: ['record', 'record', 'record', 'not_found'] });
  await world.do({ do: 'mode', scoped: true });
  await world.check();
  const [row] = await store.sql`
    select s.state, d.reason, d.outside_due_at is null as inside
    from catalog.skus s join catalog_internal.due d using (sku) where sku = 'B1'`;
  deepStrictEqual({ ...row }, { state: 'not_found', reason: 'watched', inside: false });
});
