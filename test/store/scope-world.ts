import { ok, strictEqual } from 'node:assert/strict';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { type Claim, returnClaim } from '../../src/store/ledger/due.ts';
import { refreshAll, refreshSkus } from '../../src/store/sellers/refresh.ts';
import { readScope, storeScopeMode } from '../../src/store/sellers/scope.ts';
import { forgetUnknown } from '../../src/store/sellers/watchlist.ts';
import { baseline, line } from './manifest.ts';
import { SKUS, type Step } from './scope-steps.ts';
import { claimInScope, sortAll } from './scoping.ts';
import { found, passHours, REFRESH, type useStore } from './support.ts';
import { watchNow } from './watching.ts';

type Store = ReturnType<typeof useStore>;

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
  readonly isListed: boolean;
}

/** A mirror, the partner's answers, and a model of what has been reported and answered. */
export class World {
  readonly #store: Store;

  readonly names = new Map<string, string | null>(
    SKUS.map((sku, n) => [sku, ['Nike', 'Puma', null][n % 3] ?? null]),
  );
  /** SKUs that were reported, or appeared, and have not been answered since. */
  readonly reported = new Set<string>();
  /** SKUs whose metadata may be requested: not yet requested, or reported since, or after a long enough wait. */
  readonly unread = new Set<string>();
  /** SKUs that the partner has reported since the claim. */
  readonly #since = new Set<string>();
  /** SKUs that were answered 0009 and not reported since: requested again only after their wait. */
  readonly #nowhere = new Set<string>();
  claim: Claim | null = null;
  manifests = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  async see(): Promise<Seen[]> {
    return await this.#store.sql<Seen[]>`
      select d.sku, s.state, d.reason, d.outside_due_at is null as inside, d.due_at <= now() as "isDue", p.brand, p.model, p.category,
        coalesce(p.brand, p.model, p.category) is not null as known, s.in_manifest as "isListed"
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

  /** Returns what the rules say, from the sellers' own table. */
  async placeOf({ sku, brand, model, category, known }: Seen): Promise<'in' | 'out' | 'unknown'> {
    const [{ scoped }] = await this.#store.sql<
      [{ scoped: boolean }]
    >`select scoped from catalog_internal.scoping`;
    if (!scoped) return 'in';
    const rules = await this.#store.sql<
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

  /** Claims SKUs, and expects none out of scope, except for metadata that a rule needs. */
  async take(): Promise<void> {
    await readScope(this.#store.sql, { everything: false, pieces: 1 });
    this.claim = await claimInScope(this.#store.sql);
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
      if (kind === 'bare') return found(sku, { 9: 90 });
      if (kind === 'not_found') return { sku, kind };
      return { sku, kind: kind === 'deferred' ? 'deferred' : 'error', waitMs: 3_600_000 };
    });
    await applyAnswer(this.#store.sql, claim, results, REFRESH);
    const generations = new Map(
      (
        await this.#store.sql<
          { sku: string; generation: number }[]
        >`select sku, generation from catalog_internal.due`
      ).map(({ sku, generation }) => [sku, generation]),
    );
    for (const [n, { sku, generation }] of claim.skus.entries())
      if (
        ['record', 'bare', 'not_found'].includes(results[n]?.kind ?? '') &&
        generations.get(sku) === generation
      )
        this.#read(sku);
    for (const { sku, kind } of results)
      if (kind === 'not_found' && !this.#since.has(sku)) this.#nowhere.add(sku);
    this.claim = null;
  }

  /** Checks the place of each SKU after sorting; reported SKUs in scope must be due. */
  async check(): Promise<void> {
    await sortAll(this.#store.sql);
    for (const seen of await this.see()) {
      const place = await this.placeOf(seen);
      const where = `${seen.sku} (${seen.state}, ${seen.reason})`;
      strictEqual(seen.inside, place === 'in', where);
      if (place === 'out') strictEqual(seen.isDue, false, where);
      // A removed SKU that no list contains is not requested any more.
      if (place === 'unknown' && (seen.isListed || seen.state !== 'removed'))
        strictEqual(seen.reason, 'scope', `${where} is never asked for again`);
      const isAsked = place === 'in' || (place === 'unknown' && !this.#nowhere.has(seen.sku));
      if (isAsked && this.reported.has(seen.sku)) ok(seen.isDue, `${where} is forgotten`);
    }
  }

  async do(step: Step): Promise<void> {
    const { sql } = this.#store;
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
    // A SKU that is new to the mirror has not been requested yet.
    for (const { sku, state } of await this.see()) if (state === 'pending') this.#appear(sku);
    // Their waits are over, or ended by a refresh or the watchlist.
    if (['sweep', 'all', 'metadata', 'watch', 'refresh'].includes(step.do))
      for (const sku of SKUS) this.unread.add(sku);
  }

  async other(what: string): Promise<void> {
    const { sql } = this.#store;
    if (what === 'truncate') await sql`truncate catalog.scope`;
    else if (what === 'read') await readScope(sql, { everything: true, pieces: 1 });
    else if (what === 'sweep') await passHours(sql, 50);
    else if (what === 'all') await refreshAll(sql, 'prices');
    else if (what === 'metadata') await refreshAll(sql, 'metadata');
    else if (what === 'forget') await forgetUnknown(sql, 10);
    else if (what === 'claim' && this.claim !== null) {
      await returnClaim(
        sql,
        this.claim,
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
    await this.#store.sql`update catalog_internal.sync set snapshot_id = 'token', chain_broken_at = null`;
    const known = new Set((await this.see()).map(({ sku }) => sku));
    const gone = new Set(removed);
    const stays = (sku: string) => !gone.has(sku);
    const nowLive = live.filter(stays);
    // A SKU that is still live is no news (partner rule 4.2.7).
    const stillLive = new Set(
      (
        await this.#store.sql<{ sku: string }[]>`
          select sku from catalog.skus
          where sku = any(${nowLive}) and in_manifest and price_source = 'live' and state in ('priced', 'pending')`
      ).map(({ sku }) => sku),
    );
    await applyDelta(this.#store.sql, {
      since: 'token',
      toSnapshot: 'token',
      changed: [...changed.filter(stays), ...nowLive],
      nowLive,
      removed,
    });
    for (const sku of [...changed, ...live]) if (stays(sku) && !stillLive.has(sku)) this.#report(sku);
    for (const sku of removed) this.reported.delete(sku);
    // One that the mirror did not know is requested once, like any other removed SKU.
    for (const sku of removed) if (!known.has(sku)) this.unread.add(sku);
  }

  async manifest(skus: readonly string[], hash: string): Promise<void> {
    const before = new Map((await this.see()).map(({ sku, reason }) => [sku, reason]));
    this.manifests += 1;
    const generations = async () =>
      new Map(
        (
          await this.#store.sql<
            { sku: string; generation: number }[]
          >`select sku, generation from catalog_internal.due`
        ).map(({ sku, generation }) => [sku, generation]),
      );
    const earlier = await generations();
    await baseline(
      this.#store.url,
      skus.map((sku) => line(sku, { hash })),
      { token: { snapshotId: `m${this.manifests}` } },
    );
    const later = await generations();
    // A SKU that a manifest no longer lists is requested from the price routes, too.
    for (const [sku, generation] of earlier) if (later.get(sku) !== generation) this.unread.add(sku);
    for (const [sku, generation] of later)
      if (skus.includes(sku) && (earlier.get(sku) !== generation || !before.has(sku))) this.#report(sku);
  }
}
