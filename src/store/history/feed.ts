import type { LoneClient } from '../connection/db.ts';
import { POSITION_LOST, sqlState } from '../connection/sql-errors.ts';
import { FollowerError, type Place } from './followers.ts';

/**
 * A change of the feed, as catalog.changes returns it. The first copy reports what exists as if it had just
 * appeared.
 */
export interface Change {
  readonly position: bigint;
  readonly kind: string;
  readonly sku: string;
  readonly size: string | null;
  readonly oldPrice: number | null;
  readonly newPrice: number | null;
  readonly field: string | null;
  readonly oldValue: string | null;
  readonly newValue: string | null;
  readonly meaningChanged: boolean;
  readonly observedAt: Date;
  /** Part of the first copy; its position is the one from which changes follow. */
  readonly copy: boolean;
}

/** Which changes are wanted: those that every part lets through. A null part lets all through. */
export interface Filter {
  readonly kinds: readonly string[] | null;
  /** Compared as catalog.scope compares brands: ignoring the case of A to Z, and blanks around them. */
  readonly brands: readonly string[] | null;
  readonly skus: readonly string[] | null;
  /** Only SKUs on catalog.watchlist. */
  readonly watchlist: boolean;
}

export interface Page {
  /** The changes that pass the filter, in order. */
  readonly changes: readonly Change[];
  /**
   * The position of the last change that was read, whether or not it passed; if none was read, where reading began.
   */
  readonly readTo: bigint;
  /** In the first copy: the SKU up to which it was read, null at its end. For changes: null. */
  readonly copiedTo: string | null;
  /** In the first copy: the newest position when it was read. */
  readonly shownTo?: bigint;
  /** Whether there is nothing more at present. */
  readonly isEnd: boolean;
}

interface Row {
  readonly position: string;
  readonly kind: string;
  readonly sku: string;
  readonly size: string | null;
  readonly old_price: number | null;
  readonly new_price: number | null;
  readonly field: string | null;
  readonly old_value: string | null;
  readonly new_value: string | null;
  readonly meaning_changed: boolean;
  readonly observed_at: Date;
  readonly passes: boolean;
  readonly total: number;
}

const COLUMNS =
  'position, kind, sku, size, old_price, new_price, field, old_value, new_value, meaning_changed, observed_at';

/**
 * Returns the condition under which a change passes, and the join that it needs; its parameters begin with the
 * third. If a SKU is no longer mirrored, or its prices go, that passes without a lookup: nothing is left to look up,
 * and a follower that does not know the SKU loses nothing. A change of brand also passes for its old value, because
 * it is the last change of the SKU that a follower of that brand gets.
 */
function passing({ kinds, brands, skus, watchlist }: Filter) {
  const values = [kinds, brands, skus];
  const brand = (of: string) =>
    `catalog_internal.scope_name('brand', ${of}) in (select catalog_internal.scope_name('brand', b) from unnest($4::text[]) b)`;
  const looked = [
    `($4::text[] is null ${brands === null ? '' : `or ${brand('p.brand')} or c.field = 'brand' and ${brand('c.old_value')}`})`,
    ...(watchlist
      ? ['exists (select from catalog_internal.watched w where w.sku = c.sku and w.weight is not null)']
      : []),
  ].join(' and ');
  const gone = `c.kind = 'sku' and c.field = 'state' and c.new_value is null
    or c.kind = 'price' and c.new_price is null and not exists (select from catalog.products known where known.sku = c.sku)`;
  return {
    joins: brands === null ? '' : 'left join catalog.products p on p.sku = c.sku',
    condition: `($3::text[] is null or c.kind = any($3)) and ($5::text[] is null or c.sku = any($5)) and (${looked} or ${gone})`,
    values,
  };
}

/**
 * Where to read from, and the position that a receiver may have been told of, which the database must have reached.
 */
interface Reading {
  readonly after: bigint;
  readonly seen: bigint;
}

/**
 * Reads the rows of the feed that pass, and its last row in any case, because that shows how far was read. If a
 * receiver has been told of more than `after`, rows are read only from a database that has those changes, too. One
 * statement checks both, because the database could be replaced in between, and every read checks it, because a
 * promoted standby shows it only once somebody has written there.
 */
async function readRows(
  client: LoneClient,
  source: (most: string) => string,
  given: readonly [string, number],
  { after, seen }: Reading,
  filter: Filter,
): Promise<Row[]> {
  const { joins, condition, values } = passing(filter);
  const checked = seen > after;
  const most = checked
    ? '$2::int + 0 * (select count(*) from catalog.changes($6::bigint, 1))::int'
    : '$2::int';
  try {
    const { rows } = await client.query<Row>(
      `select * from (
         select ${COLUMNS.split(', ')
           .map((column) => `c.${column}`)
           .join(', ')}, n, coalesce(${condition}, false) as passes, (count(*) over ())::int as total
         from ${source(most)} with ordinality as c(${COLUMNS}, n) ${joins}
       ) read where passes or n = total order by n`,
      [...given, ...values, ...(checked ? [String(seen)] : [])],
    );
    return rows;
  } catch (error) {
    if (sqlState(error) !== POSITION_LOST) throw error;
    throw positionLost(error);
  }
}

const positionLost = (cause?: unknown): FollowerError =>
  new FollowerError(
    'position-lost',
    'the kept position is lost: the changes after it are no longer kept, or the database was restored',
    'empty the receiver, for what went meanwhile is told by nobody, and begin again with --from start --reset, ' +
      'which sends the present state and then the changes; or with --from oldest --reset, which sends what is still kept',
    cause,
  );

const changeOf = (row: Row, position: bigint, copy: boolean): Change => ({
  position,
  kind: row.kind,
  sku: row.sku,
  size: row.size,
  oldPrice: row.old_price,
  newPrice: row.new_price,
  field: row.field,
  oldValue: row.old_value,
  newValue: row.new_value,
  meaningChanged: row.meaning_changed,
  observedAt: row.observed_at,
  copy,
});

/**
 * Reads at most `most` changes after a position.
 *
 * @throws FollowerError `position-lost`
 */
export async function readChanges(
  client: LoneClient,
  reading: Reading,
  most: number,
  filter: Filter,
): Promise<Page> {
  const { after } = reading;
  const source = (limit: string) => `catalog.changes($1::bigint, ${limit})`;
  const rows = await readRows(client, source, [String(after), most], reading, filter);
  const last = rows.at(-1);
  return {
    changes: rows.filter(({ passes }) => passes).map((row) => changeOf(row, BigInt(row.position), false)),
    readTo: last === undefined ? after : BigInt(last.position),
    copiedTo: null,
    isEnd: (last?.total ?? 0) < most,
  };
}

/**
 * Reads the next `skus` SKUs as if they had just appeared (catalog.changes_snapshot). `reading.after` is the
 * position from which changes follow once the copy is over; every row of the copy gets it.
 *
 * @throws FollowerError `position-lost`
 */
export async function readCopy(
  client: LoneClient,
  afterSku: string,
  skus: number,
  reading: Reading,
  filter: Filter,
): Promise<Page> {
  const position = reading.after;
  const source = (limit: string) => `catalog.changes_snapshot($1::text, ${limit})`;
  const rows = await readRows(client, source, [afterSku, skus], reading, filter);
  const last = rows.at(-1);
  return {
    changes: rows.filter(({ passes }) => passes).map((row) => changeOf(row, position, true)),
    readTo: position,
    copiedTo: last?.sku ?? null,
    ...(last !== undefined && { shownTo: BigInt(last.position) }),
    isEnd: false,
  };
}

/**
 * Returns the position up to which a receiver may have been told of changes, including those shown by a first copy.
 */
export const newestOf = ({ position, shownTo = position }: Place): bigint =>
  shownTo > position ? shownTo : position;

/**
 * Checks that the database has all changes that the receiver may have been told of. A standby that is behind fails
 * with a conflict (SQLSTATE 40001) until it has them.
 *
 * @throws FollowerError `position-lost`
 */
export async function checkReached(client: LoneClient, delivered: Place): Promise<void> {
  const newest = newestOf(delivered);
  const everything = { kinds: null, brands: null, skus: null, watchlist: false };
  await readChanges(client, { after: newest, seen: newest }, 1, everything);
}

/**
 * Checks a kept place against what was delivered. A database that was restored, or a standby that was behind, has an
 * earlier place, or one that another process has reached on it, and no later change reveals that changes are lost. A
 * follower that was set back for another reason only gets changes again.
 *
 * @throws FollowerError `position-lost`
 */
export async function checkNotSetBack(client: LoneClient, delivered: Place, kept: Place): Promise<void> {
  if (kept.position !== newestOf(delivered)) await checkReached(client, delivered);
  if (kept.position === delivered.position && isCopyBehind(delivered.afterSku, kept.afterSku))
    throw positionLost();
}

/**
 * Whether the receiver has more of the copy than was kept: that may include lost changes, and no position reveals
 * it.
 */
const isCopyBehind = (delivered: string | null, kept: string | null): boolean =>
  kept !== null && (delivered === null || Buffer.compare(Buffer.from(kept), Buffer.from(delivered)) < 0);
