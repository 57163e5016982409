import { isObject } from '../../lib/json.ts';
import { type Sql, transaction, type Tx } from '../connection/db.ts';

/*
 * Members that move with each refresh, as a counter of views does. Each of their moves would be a row of history and a
 * change in the feed, and each refresh of a SKU would rewrite every price whose entry has such a member. They are
 * noticed by member, over all SKUs, and muted: stored, but without history. The evidence comes from SKUs that are
 * followed from one refresh to the next: a member that moved moves again, or rests. So a change that happens once for
 * every SKU (the partner has new pictures) stays in the history.
 *
 * Columns of metadata are watched, too, because a value that goes back and forth writes as much. But they are only
 * reported, never muted: what SQL shows of a product has its history, which says what the size keys of old prices
 * meant.
 */

/** What a member belongs to: a product, a size's entry, or (`column`) it is a column of its own. */
export type MemberPart = 'product' | 'entry' | 'column';

/** A member of JSON objects that the partner sends, for any SKU. */
export interface Member {
  readonly part: MemberPart;
  /** Names from the object downwards, as a JSON array. */
  readonly path: string;
}

/** A member with a changed value; undefined: it was, or is, not there. */
export interface MemberChange {
  readonly names: readonly string[];
  readonly path: string;
  readonly from: unknown;
  readonly to: unknown;
}

type Json = Readonly<Record<string, unknown>>;

const DEEPEST = 4;

/** Returns what differs between two JSON values, member by member; a non-object has one member without a name. */
export function memberChanges(from: unknown, to: unknown, names: readonly string[] = []): MemberChange[] {
  if (isObject(from) && isObject(to) && names.length < DEEPEST)
    return [...new Set([...Object.keys(from), ...Object.keys(to)])].flatMap((name) =>
      memberChanges(own(from, name), own(to, name), [...names, name]),
    );
  return same(from, to) ? [] : [{ names, path: JSON.stringify(names), from, to }];
}

const own = (object: Json, name: string): unknown => (Object.hasOwn(object, name) ? object[name] : undefined);

function same(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((value, at) => same(value, other[at]));
  if (isObject(one) && isObject(other)) {
    const names = Object.keys(one);
    return (
      names.length === Object.keys(other).length &&
      names.every((name) => Object.hasOwn(other, name) && same(one[name], other[name]))
    );
  }
  return one === other;
}

/** Returns an object with only these members, as they were (`from`) or are (`to`), as JSON text. */
export function membersAlone(changes: readonly MemberChange[], which: 'from' | 'to'): string {
  const root = Object.create(null) as Record<string, unknown>;
  for (const { names, [which]: value } of changes) {
    let at = root;
    // Also if the member itself is missing, to distinguish that from a missing parent object.
    for (const name of names.slice(0, -1)) at = (at[name] ??= Object.create(null)) as typeof root;
    if (value !== undefined) at[names.at(-1) ?? ''] = value;
  }
  return JSON.stringify(root);
}

/** A member as one text, for sets and maps: `part path`. `memberOf` reverses it. */
export const keyOf = ({ part, path }: Member): string => `${part} ${path}`;
const memberOf = (key: string): Member => {
  const at = key.indexOf(' ');
  return { part: key.slice(0, at) as MemberPart, path: key.slice(at + 1) };
};

/** A refreshed SKU, and the keys of its members that moved. */
export interface Moved {
  readonly sku: string;
  readonly keys: ReadonlySet<string>;
}

/** Members to mute from now on, or no longer; columns to report, or no longer. */
export interface MutedChange {
  readonly muted: readonly Member[];
  readonly unmuted: readonly Member[];
  /** Members that are muted already and keep moving. */
  readonly renewed: readonly Member[];
}

/** Most SKUs that are followed at a time; MAX_MEMBERS: most members that are counted. */
const MAX_SKUS = 2000;
/** A SKU that was not refreshed for this long, twice METADATA_INTERVAL's default, makes room for another. */
const FOLLOWED_MS = 14 * 86_400_000;
const MAX_MEMBERS = 200;
/** A member is muted once it has moved again this often, and at least as often as it has rested. */
const MUTED_FROM = 24;
/** A muted member is recorded again once it has rested more than this many times as often as it has moved. */
const HEARD_AT = 3;
/** More evidence than this fades. */
const REMEMBERED = 64;
/** How often it is stored that a muted member keeps moving. */
const RENEWED_MS = 3_600_000;
/**
 * After this long without a renewal a member is recorded again: the process that followed its SKUs may have ended, and
 * a new one follows only SKUs that move.
 */
const LAPSES_SECONDS = 2 * 86_400;

interface Count {
  again: number;
  rest: number;
}

/** What one process has noticed about members. Muted members are stored, for all processes and later ones. */
export class MemberWatch {
  /** In order of their last refreshes. */
  readonly #skus = new Map<string, { readonly keys: ReadonlySet<string>; readonly at: number }>();
  readonly #counts = new Map<string, Count>();
  readonly #renewedAt = new Map<string, number>();
  readonly #now: () => number;

  /** `now`: a monotonic clock, in milliseconds. */
  constructor(now: () => number = () => 0) {
    this.#now = now;
  }

  /**
   * Whether the SKU is followed: then its entries are always stored, because its next refresh is compared with them.
   */
  follows(sku: string): boolean {
    return this.#skus.has(sku) || this.#hasRoom();
  }

  /** Takes in the SKUs of an answer, and the members muted at present. */
  note(refreshed: readonly Moved[], muted: ReadonlySet<string>): MutedChange {
    const turned = { muted: [] as Member[], unmuted: [] as Member[], renewed: [] as Member[] };
    for (const { sku, keys } of refreshed) {
      const before = this.#skus.get(sku)?.keys;
      for (const key of before ?? []) {
        this.#count(key, keys.has(key));
        if (muted.has(key) && keys.has(key) && this.#isTime(key)) turned.renewed.push(memberOf(key));
      }
      const kept = [...(before ?? [])].filter((key) => muted.has(key));
      const now = new Set([...keys, ...kept]);
      this.#skus.delete(sku);
      if (now.size > 0 && (before !== undefined || this.#makeRoom()))
        this.#skus.set(sku, { keys: now, at: this.#now() });
    }
    for (const [key, { again, rest }] of this.#counts) {
      if (again + rest < MUTED_FROM) continue;
      const isMuted = muted.has(key);
      if (!isMuted && again >= Math.max(MUTED_FROM, rest)) turned.muted.push(memberOf(key));
      else if (isMuted && rest > HEARD_AT * again) turned.unmuted.push(memberOf(key));
      else continue;
      this.#counts.delete(key);
      this.#renewedAt.delete(key);
    }
    return turned;
  }

  #hasRoom(): boolean {
    const [oldest] = this.#skus.values();
    return this.#skus.size < MAX_SKUS || (oldest !== undefined && this.#now() - oldest.at > FOLLOWED_MS);
  }

  /** Makes room for one more SKU, if possible; returns whether there is room. */
  #makeRoom(): boolean {
    if (!this.#hasRoom()) return false;
    const [oldest] = this.#skus.keys();
    if (this.#skus.size >= MAX_SKUS && oldest !== undefined) this.#skus.delete(oldest);
    return true;
  }

  /** Whether it is time to store that a member keeps moving. */
  #isTime(key: string): boolean {
    const now = this.#now();
    if (now - (this.#renewedAt.get(key) ?? -Infinity) < RENEWED_MS) return false;
    this.#renewedAt.set(key, now);
    return true;
  }

  #count(key: string, moved: boolean): void {
    const count = this.#counts.get(key) ?? { again: 0, rest: 0 };
    if (moved) count.again += 1;
    else count.rest += 1;
    if (count.again + count.rest > REMEMBERED) {
      count.again /= 2;
      count.rest /= 2;
    }
    if (this.#counts.has(key) || this.#counts.size < MAX_MEMBERS) this.#counts.set(key, count);
  }
}

/** SQL: whether a row has been renewed recently; one dated by a clock that was ahead lapses as well. */
const HOLDS = `abs(extract(epoch from now() - since)) < ${LAPSES_SECONDS}`;

/** Returns the keys of muted members. */
export async function readMuted(tx: Tx): Promise<ReadonlySet<string>> {
  const rows = await tx<
    Member[]
  >`select part, path from catalog_internal.muted_members where ${tx.unsafe(HOLDS)}`;
  return new Set(rows.map(keyOf));
}

/** Returns the columns of metadata that change with each refresh. */
export async function readUnsteadyColumns(sql: Sql): Promise<string[]> {
  const rows = await sql<{ column: string }[]>`
    select path::jsonb ->> 0 as column from catalog_internal.muted_members
    where part = 'column' and ${sql.unsafe(HOLDS)} order by 1`;
  return rows.map(({ column }) => column);
}

/** A longer path is never muted: it must fit into an entry of a btree, 2704 bytes. */
const MAX_PATH_BYTES = 2048;
export const mayBeMuted = ({ path }: Member): boolean => Buffer.byteLength(path) <= MAX_PATH_BYTES;

/** Stores what is muted from now on, for every process, and deletes what no longer is. */
export async function storeMuted(sql: Sql, { muted, unmuted, renewed }: MutedChange): Promise<void> {
  const held = [...muted, ...renewed];
  const parts = (members: readonly Member[]) => members.map(({ part }) => part);
  const paths = (members: readonly Member[]) => members.map(({ path }) => path);
  // In a fixed order, because other daemons store the same at the same moment. Retried if one deletes what another
  // stores, because the answer that showed it is committed.
  await transaction(
    sql,
    (tx) => tx`
    with heard as (
      delete from catalog_internal.muted_members m
      using unnest(${parts(unmuted)}::text[], ${paths(unmuted)}::text[]) as u(part, path) where m.part = u.part and m.path = u.path
    )
    insert into catalog_internal.muted_members (part, path)
    select * from unnest(${parts(held)}::text[], ${paths(held)}::text[]) as h(part, path) order by part, path
    on conflict (part, path) do update set since = excluded.since`,
  );
}
