import type { World } from '../../src/sandbox/index.ts';
import type { Actionable, Mirror, Row } from './mirror.ts';

/** What the price routes say of a SKU from a moment on, as text. */
interface Version {
  readonly from: number;
  readonly content: string;
}

interface Line {
  readonly source: string;
  /** Which version of the SKU was present when the snapshot was built. */
  readonly version: number;
}

const NOT_FOUND = 'not found';
/**
 * LIVE_INTERVAL, and the time without a delta after which a price counts as one that nothing reports; with the
 * milliseconds of statements.
 */
const HALF_AN_HOUR_MS = 30 * 60_000 + 1000;

function contentOf(sizes: Record<string, number | null>): string {
  return JSON.stringify(Object.entries(sizes).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** What was true when, and what must hold of a mirror of it at any moment. */
export class Truth {
  readonly #world: World;
  readonly #versions = new Map<string, Version[]>();
  /** In the order they were built. */
  readonly #snapshots = new Map<string, ReadonlyMap<string, Line>>();

  /** When each snapshot was built, and how many versions of each SKU there were by then. */
  readonly #builds: { readonly at: number; readonly versions: ReadonlyMap<string, number> }[] = [];

  /** A moment just before each SKU became removed. */
  readonly #removed = new Map<string, number>();

  /** When each claim was made, at the latest: no clock but the world's goes on and on. */
  readonly #claims = new Map<string, number>();

  /** By so much prices may be older than Postgres's clock makes them, because it was wrong. */
  slackMs = 0;

  /** SKUs whose changes a delta has left out: of these nothing is promised until a manifest has come. */
  omitted: ReadonlySet<string> = new Set();
  /** Whether lines of a manifest could not be read: of a SKU that nothing else names nobody knows more than that. */
  isUnreadable: () => boolean = () => false;

  /** What answers said of SKUs although it was no longer so. */
  readonly #late = new Map<string, Version[]>();

  /** Rows of the ledger have been deleted. */
  ledgerDeleted = false;
  readonly #lastAsked = new Map<string, string>();
  /** As it was when the mirror was backed up. */
  #lastAskedBefore: readonly (readonly [string, string])[] = [];

  constructor(world: World, at: number) {
    this.#world = world;
    this.marketMoved(at);
    this.snapshotBuilt(at);
  }

  /** To be called after every move of the market. */
  marketMoved(at: number): void {
    for (const { sku, answer, sizeMap } of this.#world.truth().values()) {
      const versions = this.#versions.get(sku) ?? [];
      const content = answer === 'record' ? contentOf(sizeMap) : NOT_FOUND;
      if (versions.at(-1)?.content !== content) versions.push({ from: at, content });
      this.#versions.set(sku, versions);
    }
  }

  /**
   * Snapshot-priced SKUs that the last moves have brought back to what they were before (see
   * test/store/swinging.pg.test.ts).
   */
  swungBack(): string[] {
    return [...this.#world.truth().values()].flatMap(({ sku, answer, priceSource, sizeMap }) => {
      const former = this.#versions.get(sku)?.slice(0, -1) ?? [];
      const back = answer === 'record' && former.some(({ content }) => content === contentOf(sizeMap));
      return back && priceSource !== 'live' ? [sku] : [];
    });
  }

  /** An answer says of a SKU what was so before. */
  saidLate(sku: string, sizes: Record<string, number | null>, at: number): void {
    this.#late.set(sku, [...(this.#late.get(sku) ?? []), { from: at, content: contentOf(sizes) }]);
  }

  /** Covered SKUs that nothing is due of, and that are not as the partner has them. */
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

  /** When an answer last said that of the SKU although it was no longer so. */
  #lastSaidLate(sku: string, content: string): number {
    return Math.max(
      -1,
      ...(this.#late.get(sku) ?? []).flatMap((said) => (said.content === content ? [said.from] : [])),
    );
  }

  /** To be called after every snapshot. */
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

  /** What is wrong with a mirror that was `before` a moment ago; nothing, if all is well. */
  breaches(mirror: Mirror, before: Mirror | null): string[] {
    const remembered = before === null ? null : this.#remembering(before);
    return this.#breaches(this.#remembering(mirror), remembered);
  }

  /** Which answer a SKU has, where that went with its row of the ledger. */
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

  /** Nothing that the token's snapshot holds may be missing in the mirror without being due. */
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
      // Due, and asked about from then on as one that no manifest lists.
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
   * SKUs whose prices are said to be safe although they are wrong, for longer than is promised: a price that nothing
   * reports was right within its target age; one that the delta reports was right within LIVE_INTERVAL, or no
   * snapshot has told of its move for half an hour, and `tookMs`: what the answer took that the mirror goes by.
   */
  wronglyActionable(rows: readonly Actionable[], at: number, tookMs: number): string[] {
    return rows.flatMap((row) => {
      const versions = this.#versions.get(row.sku) ?? [];
      const last = versions.findLastIndex(({ content }) => content === contentOf(row.prices));
      const late = this.#lastSaidLate(row.sku, contentOf(row.prices));
      // What a report was answered with late is asked again with some probability, and at no moment of its own.
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

  /** How many of them have prices that moved after the history had begun. */
  moved(rows: readonly Actionable[]): number {
    return rows.filter(({ sku, prices }) => {
      const versions = this.#versions.get(sku) ?? [];
      return versions.findLastIndex(({ content }) => content === contentOf(prices)) > 0;
    }).length;
  }

  /** What is wrong with a SKU that is said to be answered by a request after `since`. */
  notSince(row: Row | undefined, since: number): string[] {
    // What somebody has deleted from the ledger is waited for no longer.
    if (row === undefined || row.owed === null || row.state === 'removed') return [];
    if (this.#wasTrueAfter(row, since)) return [];
    return [`${row.sku} is said to be refreshed since ${since}, and was never so since: ${shown(row)}`];
  }

  /** All that is known of the mirror's answers belongs to the backup, too. */
  backedUp(): void {
    this.#lastAskedBefore = [...this.#lastAsked];
  }

  /** The mirror is one of before, in which no claim has a greater number than this one. */
  restored(lastClaim: number): void {
    for (const claim of this.#claims.keys()) if (Number(claim) > lastClaim) this.#claims.delete(claim);
    this.#lastAsked.clear();
    for (const [sku, asked] of this.#lastAskedBefore) this.#lastAsked.set(sku, asked);
  }

  #trueWhenAsked(row: Row): boolean {
    // A removal takes the prices by itself.
    if (row.state === 'pending' || row.state === 'removed') return row.prices === null;
    return this.#wasTrueAfter(row, this.#askedAt(row, Infinity));
  }

  /** Whether it has what the partner said at some moment from `at` on. */
  #wasTrueAfter(row: Row, at: number): boolean {
    const versions = this.#versions.get(row.sku) ?? [{ from: 0, content: NOT_FOUND }];
    return (
      this.#lastSaidLate(row.sku, contentIn(row)) >= at ||
      versions.some(
        ({ content }, n) => content === contentIn(row) && (versions[n + 1]?.from ?? Infinity) >= at,
      )
    );
  }

  /** When it was asked for what the mirror has of it. */
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
