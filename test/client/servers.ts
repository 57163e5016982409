import { setImmediate } from 'node:timers/promises';
import type { Sql } from 'postgres';

/** One price change in the feed. */
interface Row {
  readonly position: bigint;
  readonly sku: string;
  readonly price: number;
}

/** What a database knows: the feed, as the functions of schema catalog return it, and the prices. */
interface State {
  rows: Row[];
  prices: Map<string, number>;
  /** Positions that belong to other histories: those after `from` and before `to`. */
  gaps: { readonly from: bigint; readonly to: bigint }[];
  /** The oldest position to resume from. */
  dropped: bigint;
  /** The newest position drawn. That of a standby, even after its promotion, is ahead of its rows. */
  drawn: bigint;
}

const EMPTY: State = { rows: [], prices: new Map(), gaps: [], dropped: 0n, drawn: 0n };
const failing = (code: string) => Object.assign(new Error(code), { code });
const AHEAD = 32n;

/** A mirror's database, as far as a consumer can see it. */
class Database {
  state: State;
  isStandby = false;
  /** Whether the writer has noticed that this is another database than before. */
  isNoted = true;

  constructor(state: State) {
    this.state = structuredClone(state);
  }

  get newest(): bigint {
    const { rows, gaps, dropped } = this.state;
    const last = rows.at(-1)?.position ?? 0n;
    const resumed = gaps.at(-1)?.to ?? 0n;
    return [last, resumed, dropped].reduce((most, one) => (one > most ? one : most));
  }

  /** Behaves like the function of this name. */
  changes(after: bigint, most: number): Row[] {
    const { rows, gaps, dropped, drawn } = this.state;
    if (after < dropped) throw failing('CM001');
    const known = drawn > this.newest ? drawn : this.newest;
    if (after > known) throw failing(this.isStandby ? '40001' : 'CM001');
    if (gaps.some(({ from, to }) => from < after && after < to)) throw failing('CM001');
    return rows.filter(({ position }) => position > after).slice(0, most);
  }

  snapshot(afterSku: string, skus: number): Row[] {
    const position = this.newest;
    return [...this.state.prices]
      .filter(([sku]) => sku > afterSku)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, skus)
      .map(([sku, price]) => ({ position, sku, price }));
  }
}

/** One address with changing databases behind it, and what can happen to them. */
export class Servers {
  primary = new Database(EMPTY);
  standby: Database | null = null;
  at: Database = this.primary;
  backup: State = structuredClone(EMPTY);
  /** How many of the next statements get no answer. */
  cut = 0;
  isAway = false;
  /** Batches that were read. */
  read = 0;
  /** How often something was lost of which a consumer may have heard. */
  losses = 0;
  #price = 1000;
  #time = 1_000_000n;

  write(sku: string): void {
    const { primary } = this;
    if (!primary.isNoted) this.#note(primary);
    const position = (primary.state.drawn > primary.newest ? primary.state.drawn : primary.newest) + 1n;
    this.#price += 1;
    primary.state.rows.push({ position, sku, price: this.#price });
    primary.state.drawn = position;
    primary.state.prices.set(sku, this.#price);
  }

  keep(): void {
    this.backup = structuredClone(this.primary.state);
  }

  /** Points the address there, and makes it reachable. */
  lead(to: 'primary' | 'standby'): void {
    if (to === 'standby' && this.standby === null) this.replicate();
    this.at = (to === 'standby' ? this.standby : null) ?? this.primary;
    this.isAway = false;
    this.cut = 0;
  }

  replicate(): void {
    this.standby ??= new Database(EMPTY);
    this.standby.isStandby = true;
    this.standby.state = structuredClone(this.primary.state);
    this.standby.state.drawn += AHEAD;
  }

  promote(): void {
    const { standby } = this;
    if (standby === null) return;
    if (standby.newest !== this.primary.newest) this.losses += 1;
    standby.isStandby = false;
    standby.isNoted = false;
    [this.primary, this.at, this.standby] = [standby, standby, null];
  }

  /** `isNoted`: a daemon has started on it before anybody reads. */
  restore(isNoted: boolean): void {
    const restored = new Database(this.backup);
    if (restored.newest !== this.primary.newest) this.losses += 1;
    if (isNoted) this.#note(restored);
    restored.isNoted = isNoted;
    [this.primary, this.at, this.standby] = [restored, restored, null];
  }

  dropOld(): void {
    const { state } = this.primary;
    const [kept] = state.rows.slice(-2);
    if (kept === undefined) return;
    this.losses += 1;
    state.rows = state.rows.filter(({ position }) => position > kept.position);
    state.dropped = kept.position;
  }

  #note(database: Database): void {
    this.#time += 1_000_000n;
    database.state.gaps.push({ from: database.newest, to: this.#time });
    database.isNoted = true;
  }

  /** The driver's client of that address, as far as reading uses it. */
  get sql(): Sql {
    const values = async (query: string, given: readonly string[]): Promise<unknown[][]> => {
      await setImmediate();
      if (this.isAway) throw failing('ECONNREFUSED');
      if (this.cut > 0) {
        this.cut -= 1;
        throw failing('CONNECTION_CLOSED');
      }
      return this.#answer(query, given);
    };
    return {
      unsafe: (query: string, given: readonly string[] = []) => ({ values: () => values(query, given) }),
      listen: () => Promise.reject(failing('25006')),
    } as unknown as Sql;
  }

  #answer(query: string, given: readonly string[]): unknown[][] {
    const { at } = this;
    if (query.includes('pg_is_in_recovery')) return [[String(at.isStandby)]];
    if (query.includes('changes_position')) return [[String(at.newest)]];
    const [after = '', most = '', seen] = given;
    if (seen !== undefined) at.changes(BigInt(seen), 1);
    const rows = query.includes('changes_snapshot')
      ? at.snapshot(after, Number(most))
      : at.changes(BigInt(after), Number(most));
    this.read += 1;
    const none = seen === undefined ? [] : [[null]];
    if (rows.length === 0) return none;
    return rows.map(({ position, sku, price }) => [
      String(position),
      'price',
      sku,
      '9',
      null,
      price,
      null,
      null,
      null,
      false,
      '0',
    ]);
  }
}
