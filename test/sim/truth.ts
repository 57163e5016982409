import type { World } from '../../src/sandbox/index.ts';
import type { Actionable, Mirror, Row } from './mirror.ts';

/** What the price routes say of a SKU from a moment on, as text. */
interface Version {
  readonly from: number;
  readonly content: string;
}

interface Line {
  readonly source: string;
  /** Which version of the SKU was current when the snapshot was built. */
  readonly version: number;
}

const NOT_FOUND = 'not found';
/**
 * LIVE_INTERVAL, which is also the time without a delta after which a price counts as unreported, plus the
 * milliseconds of statements.
 */
const HALF_AN_HOUR_MS = 30 * 60_000 + 1000;

function contentOf(sizes: Record<string, number | null>): string {
  return JSON.stringify(Object.entries(sizes).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** What was true when, and what must hold for a mirror of it at any moment. */
export class Truth {
  readonly #world: World;
  readonly #versions = new Map<string, Version[]>();
  /** In the order in which they were built. */
  readonly #snapshots = new Map<string, ReadonlyMap<string, Line>>();

  /** When each snapshot was built, and how many versions of each SKU there were by then. */
  readonly #builds: { readonly at: number; readonly versions: ReadonlyMap<string, number> }[] = [];

  /** A moment just before each SKU became removed. */
  readonly #removed = new Map<string, number>();

  /** When each claim was made, at the latest. Only the world's clock never goes back. */
  readonly #claims = new Map<string, number>();

  /** How much older prices may be than Postgres's clock says, because it was wrong. */
  slackMs = 0;

  /** SKUs whose changes a delta has left out. Nothing is promised for them until a manifest has come. */
  omitted: ReadonlySet<string> = new Set();
  /**
   * Decides whether lines of a manifest could not be read. Nobody knows more than that of a SKU that nothing else
   * names.
   */
  isUnreadable: () => boolean = () => false;

  /** What answers said of SKUs although it was no longer true. */
  readonly #late = new Map<string, Version[]>();

  /** Whether rows of the ledger have been deleted. */
  ledgerDeleted = false;
  readonly #lastAsked = new Map<string, string>();
  /** Its state at the time of the backup. */
  #lastAskedBefore: readonly (readonly [string, string])[] = [];

  constructor(world: World, at: number) {
    this.#world = world;
    this.marketMoved(at);
    this.snapshotBuilt(at);
  }

  /** Must be called after every move of the market. */
  marketMoved(at: number): void {
    for (const { sku, answer, sizeMap } of this.#world.truth().values()) {
      const versions = this.#versions.get(sku) ?? [];
      const content = answer === 'record' ? contentOf(sizeMap) : NOT_FOUND;
      if (versions.at(-1)?.content !== content) versions.push({ from: at, content });
      this.#versions.set(sku, versions);
    }
  }

  /**
   * Returns snapshot-priced SKUs that the last moves have brought back to an earlier state (see
   * test/store/swinging.pg.test.ts).
   */
  swungBack(): string[] {
    return [...this.#world.truth().values()].flatMap(({ sku, answer, priceSource, sizeMap }) => {
      const former = this.#versions.get(sku)?.slice(0, -1) ?? [];
      const back = answer === 'record' && former.some(({ content }) => content === contentOf(sizeMap));
      return back && priceSource !== 'live' ? [sku] : [];
    });
  }

  /** Notes an answer that says what was true of a SKU before. */
  saidLate(sku: string, sizes: Record<string, number | null>, at: number): void {
    this.#late.set(sku, [...(this.#late.get(sku) ?? []), { from: at, content: contentOf(sizes) }]);
  }

  /** Returns covered SKUs of which nothing is due, but that differ from the partner's. */
  wrong({ rows }: Mirror): string[] {
    return [...rows.values()].flatMap((row) => {
      const present = this.#versions.get(row.sku)?.at(-1)?.content;
      const isCovered = row.listed && row.source === 'snapshot' && row.owed === false;
      return isCovered && present !== contentIn(row)
        ? [`${row.sku} stays wrong: ${shown(row)} for ${present}`]
        : [];
    });
  }

  /** Whether any answer did so. */
  get hasLate(): boolean {
    return this.#late.size > 0;
  }

  /** Returns when an answer last said this of the SKU although it was no longer true. */
  #lastSaidLate(sku: string, content: string): number {
    return Math.max(
      -1,
      ...(this.#late.get(sku) ?? []).flatMap((said) => (said.content === content ? [said.from] : [])),
    );
  }

  /** Must be called after every snapshot. */
  snapshotBuilt(at: number): void {
    const id = this.#world.newestSnapshot();
    if (id === null) return;
    const listed = [...this.#world.truth().values()].filter(({ priceSource }) => priceSource !== null);
    const lines = listed.map(({ sku, priceSource }): [string, Line] => [
      sku,
      { source: priceSource ?? '', version: (this.#versions.get(sku)?.length ?? 0) - 1 },
    ]);
    this.#snapshots.set(id, new Map(lines));
    const counts = [...this.#versions].map(([sku, { length }]): [string, number] => [sku, length]);
    this.#builds.push({ at, versions: new Map(counts) });
  }

  /** Returns what is wrong with a mirror that was `before` a moment ago. Empty if all is well. */
  breaches(mirror: Mirror, before: Mirror | null): string[] {
    const remembered = before === null ? null : this.#remembering(before);
    return this.#breaches(this.#remembering(mirror), remembered);
  }

  /** Restores which answer a SKU holds, if that was lost with its row of the ledger. */
  #remembering(mirror: Mirror): Mirror {
    const rows = [...mirror.rows].map(([sku, row]): [string, Row] => {
      if (row.asked !== null) this.#lastAsked.set(sku, row.asked);
      return [
        sku,
        { ...row, asked: row.asked ?? (this.ledgerDeleted ? (this.#lastAsked.get(sku) ?? null) : null) },
      ];
    });
    return { ...mirror, rows: new Map(rows) };
  }

  #breaches(mirror: Mirror, before: Mirror | null): string[] {
    const found = [...this.#cursorAhead(mirror)];
    for (const { claim, asked } of mirror.rows.values()) {
      if (asked !== null && !this.#claims.has(asked)) this.#claims.set(asked, before?.at ?? 0);
      if (claim !== null && !this.#claims.has(claim)) this.#claims.set(claim, mirror.at);
    }
    for (const row of mirror.rows.values()) {
      if (!this.#versions.has(row.sku)) found.push(`${row.sku} is known to nobody else`);
      const was = before?.rows.get(row.sku);
      // Somebody may have deleted it.
      if (row.owed === null && was?.owed !== null && !this.ledgerDeleted)
        found.push(`${row.sku} has no row in the ledger`);
      if (was !== undefined && Number(was.asked) > Number(row.asked))
        found.push(`${row.sku}: an older answer took the place of a newer one`);
      if (
        was?.state === 'removed' &&
        row.state === 'priced' &&
        this.#askedAt(row, 0) <= (this.#removed.get(row.sku) ?? 0)
      )
        found.push(`${row.sku} came back by an answer that its removal overtook`);
      if (row.state === 'removed' && was?.state !== 'removed') this.#removed.set(row.sku, before?.at ?? 0);
      if (!this.#trueWhenAsked(row)) found.push(`${row.sku} was never so since it was asked: ${shown(row)}`);
    }
    return found;
  }

  /** Nothing in the token's snapshot may be missing in the mirror without being due. */
  *#cursorAhead({ token, rows }: Mirror): Generator<string> {
    if (token === null) {
      if (rows.size > 0) yield 'lines without their token';
      return;
    }
    const ids = [...this.#snapshots.keys()];
    const since = ids.slice(ids.indexOf(token)).map((id) => this.#snapshots.get(id));
    const [present] = since;
    if (!ids.includes(token) || present === undefined) {
      yield `no snapshot is named ${token}`;
      return;
    }
    for (const sku of new Set([...present.keys(), ...rows.keys()])) {
      if (this.omitted.has(sku)) continue;
      const row = rows.get(sku);
      // It is due, and from then on refreshed like a SKU that no manifest lists.
      if (row !== undefined && !row.listed && row.source === null && this.isUnreadable()) continue;
      const cohort = row?.listed === true ? row.source : null;
      // A manifest may have brought what the next delta will report.
      if (!since.some((lines) => (lines?.get(sku)?.source ?? null) === cohort)) {
        yield `${sku} is ${present.get(sku)?.source ?? 'not listed'} at ${token}, ${row === undefined ? 'unknown' : String(cohort)} here`;
        continue;
      }
      const line = present.get(sku);
      if (row === undefined || line?.source !== 'snapshot' || cohort !== 'snapshot' || row.owed !== false)
        continue;
      const versions = this.#versions.get(sku)?.slice(line.version) ?? [];
      const isLate = this.#lastSaidLate(sku, contentIn(row)) >= 0;
      if (!isLate && !versions.some(({ content }) => content === contentIn(row)))
        yield `${sku} is behind the token and not due: ${shown(row)}`;
    }
  }

  /**
   * SKUs whose prices are said to be safe although they have been wrong for longer than promised. A price that
   * nothing reports must have been right within its target age. A price that the delta reports must have been
   * right within LIVE_INTERVAL, unless no snapshot has told of its move for half an hour and `tookMs`, the time
   * that the answer took on which the mirror relies.
   */
  wronglyActionable(rows: readonly Actionable[], at: number, tookMs: number): string[] {
    return rows.flatMap((row) => {
      const versions = this.#versions.get(row.sku) ?? [];
      const last = versions.findLastIndex(({ content }) => content === contentOf(row.prices));
      const late = this.#lastSaidLate(row.sku, contentOf(row.prices));
      // A report with an outdated answer is asked for again with some probability, at no fixed time.
      if (row.covered && (late >= 0 || this.omitted.has(row.sku))) return [];
      const until = Math.max(late, versions[last + 1]?.from ?? Infinity);
      const told =
        this.#builds.find(({ versions: built }) => (built.get(row.sku) ?? 0) > last + 1)?.at ?? Infinity;
      const isPromised = row.covered
        ? at - until <= HALF_AN_HOUR_MS + this.slackMs || at - told <= HALF_AN_HOUR_MS + this.slackMs + tookMs
        : at - until <= row.target + this.slackMs + 1000;
      return isPromised
        ? []
        : [`${row.sku} is actionable, and wrong for ${at - until} ms: ${JSON.stringify(row)}`];
    });
  }

  /** Counts the rows whose prices moved after the history had begun. */
  moved(rows: readonly Actionable[]): number {
    return rows.filter(({ sku, prices }) => {
      const versions = this.#versions.get(sku) ?? [];
      return versions.findLastIndex(({ content }) => content === contentOf(prices)) > 0;
    }).length;
  }

  /** Returns what is wrong with a SKU that is said to be answered by a request after `since`. */
  notSince(row: Row | undefined, since: number): string[] {
    // Nobody waits any longer for a SKU that somebody has deleted from the ledger.
    if (row === undefined || row.owed === null || row.state === 'removed') return [];
    if (this.#wasTrueAfter(row, since)) return [];
    return [`${row.sku} is said to be refreshed since ${since}, and was never so since: ${shown(row)}`];
  }

  /** Includes what is known of the mirror's answers in the backup. */
  backedUp(): void {
    this.#lastAskedBefore = [...this.#lastAsked];
  }

  /** Takes the mirror back to an earlier state, in which no claim has a greater number than `lastClaim`. */
  restored(lastClaim: number): void {
    for (const claim of this.#claims.keys()) if (Number(claim) > lastClaim) this.#claims.delete(claim);
    this.#lastAsked.clear();
    for (const [sku, asked] of this.#lastAskedBefore) this.#lastAsked.set(sku, asked);
  }

  #trueWhenAsked(row: Row): boolean {
    // A removal deletes the prices by itself.
    if (row.state === 'pending' || row.state === 'removed') return row.prices === null;
    return this.#wasTrueAfter(row, this.#askedAt(row, Infinity));
  }

  /** Decides whether it holds what the partner said at some moment from `at` on. */
  #wasTrueAfter(row: Row, at: number): boolean {
    const versions = this.#versions.get(row.sku) ?? [{ from: 0, content: NOT_FOUND }];
    return (
      this.#lastSaidLate(row.sku, contentIn(row)) >= at ||
      versions.some(
        ({ content }, n) => content === contentIn(row) && (versions[n + 1]?.from ?? Infinity) >= at,
      )
    );
  }

  /** Returns when the request was sent whose answer the mirror holds. */
  #askedAt({ asked }: Row, never: number): number {
    return asked === null ? never : (this.#claims.get(asked) ?? never);
  }
}

function contentIn(row: Row): string {
  if (row.state === 'priced') return contentOf(row.prices ?? {});
  return row.state === 'pending' ? 'pending' : NOT_FOUND;
}

function shown(row: Row): string {
  return JSON.stringify(row);
}
