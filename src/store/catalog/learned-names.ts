import { z } from 'zod';
import type { Sql } from '../connection/db.ts';
import { isOwnMirror } from '../connection/own-mirror.ts';

/*
 * What answers have shown of names that the partner does not document, shared by all daemons and kept for later ones
 * (catalog_internal.learned_names): the field of size_map's entries that contains the price, members of size_map that
 * are not sizes, and the fields from which the last applied manifest was read. partner/entry-forms.ts,
 * partner/other-members.ts and partner/manifest-fields.ts use them.
 */

/** The field of entries that contains their price. */
interface LearnedField {
  /** Null if entries themselves are numbers. */
  readonly value: string | null;
  /** Consecutive answers that had it. */
  readonly answers: number;
}

/** A learned field as stored. */
interface HeldField extends LearnedField {
  /** For how long no answer has had it, in milliseconds by Postgres's clock; null if the last one had it. */
  readonly missingMs: number | null;
}

export interface LearnedPrice extends HeldField {
  /** Counts the changes. */
  readonly step: number;
}

const learnedMembers = z
  .array(
    z.object({
      name: z.string(),
      records: z.number(),
      isNumber: z.boolean(),
      objects: z.number().default(0),
      isSize: z.boolean(),
    }),
  )
  .readonly();
/** Members of `size_map` that are not sizes, with the evidence. */
type LearnedMembers = z.infer<typeof learnedMembers>;

export interface LearnedNames {
  /** Null if nothing is learned. */
  readonly price: LearnedPrice | null;
  /** The field of records without any entry of `price`'s, and how many answers had both; null if there were none. */
  readonly also: HeldField | null;
  readonly others: LearnedMembers;
  /** Paths in the manifest response; null if unknown. */
  readonly manifest: { readonly url: string | null; readonly snapshotId: string | null };
}

const PRICE = 'price';
const ALSO = 'price_also';
const OTHERS = 'other_members';
const MANIFEST_URL = 'manifest_url';
const SNAPSHOT_ID = 'snapshot_id';

/**
 * A clock that has been set back must not make the time negative. GREATEST ignores nulls, so they are excluded first.
 */
const MISSING_MS = `
  case when missing_since is not null then (greatest(0, extract(epoch from clock_timestamp() - missing_since)) * 1000)::float8 end`;

export async function readLearnedNames(sql: Sql): Promise<LearnedNames> {
  const rows = await sql<(LearnedPrice & { name: string })[]>`
    select name, value, answers, step, ${sql.unsafe(MISSING_MS)} as "missingMs" from catalog_internal.learned_names`;
  const of = (name: string) => rows.find((row) => row.name === name) ?? null;
  const url = of(MANIFEST_URL)?.value ?? null;
  return {
    price: of(PRICE),
    also: of(ALSO),
    others: membersOf(of(OTHERS)?.value),
    manifest: { url, snapshotId: of(SNAPSHOT_ID)?.value ?? null },
  };
}

/** Returns no members if a later version has stored them in another format: they are learned again. */
function membersOf(text: string | null | undefined): LearnedMembers {
  try {
    return learnedMembers.safeParse(JSON.parse(text ?? '[]')).data ?? [];
  } catch {
    return [];
  }
}

/** What is known of the field from now on; `isMissing`: no answer has it any longer. */
export interface LearnedPriceChange extends LearnedFieldChange {
  readonly also: LearnedFieldChange | null;
  /** Null if nothing has changed. */
  readonly others: LearnedMembers | null;
}

interface LearnedFieldChange extends LearnedField {
  readonly isMissing: boolean;
}

/**
 * Stores the field as the step after `step` (0: nothing was learned). Returns false, with nothing changed, if another
 * daemon has already stored that step, or the mirror has become another account's. A single statement, so that no
 * client that stops responding can hold its lock.
 */
export async function storeLearnedPrice(
  sql: Sql,
  { value, answers, isMissing, also, others }: LearnedPriceChange,
  step: number,
): Promise<boolean> {
  const stored = await sql`
    with stored as (
      insert into catalog_internal.learned_names as l (name, value, answers, missing_since, step)
      select ${PRICE}, ${value}, ${answers}, case when ${isMissing} then clock_timestamp() end, ${step + 1}
      where ${isOwnMirror(sql, sql)}
      on conflict (name) do update set value = excluded.value, answers = excluded.answers, step = excluded.step,
        missing_since = case when excluded.missing_since is not null then coalesce(l.missing_since, excluded.missing_since) end,
        learned_at = case when (l.value, l.answers) is distinct from (excluded.value, excluded.answers)
          then excluded.learned_at else l.learned_at end
      where l.step = excluded.step - 1
      returning 1
    ),
    beside as (
      insert into catalog_internal.learned_names as l (name, value, answers, missing_since)
      select ${ALSO}, ${also?.value ?? null}, ${also?.answers ?? 0}, case when ${also?.isMissing === true} then clock_timestamp() end
      from stored where ${also !== null}
      on conflict (name) do update set value = excluded.value, answers = excluded.answers,
        missing_since = case when excluded.missing_since is not null then coalesce(l.missing_since, excluded.missing_since) end,
        learned_at = case when excluded.missing_since is null then excluded.learned_at else l.learned_at end
      where (l.value, l.answers, l.missing_since is null)
        is distinct from (excluded.value, excluded.answers, excluded.missing_since is null)
    ),
    members as (
      insert into catalog_internal.learned_names as l (name, value)
      select ${OTHERS}, ${others === null ? null : JSON.stringify(others)} from stored where ${others !== null}
      on conflict (name) do update set value = excluded.value, learned_at = excluded.learned_at
    ),
    alone as (
      delete from catalog_internal.learned_names where name = ${ALSO} and ${also === null} and exists (select from stored)
    )
    select from stored`;
  return stored.length > 0;
}

/**
 * SQL, in a manifest's own transaction: stores from which fields it was read, $1 for the URL, $2 for the identifier.
 */
export const REMEMBER_FIELDS = `
  insert into catalog_internal.learned_names as l (name, value)
  select * from (values ('${MANIFEST_URL}', $1::text), ('${SNAPSHOT_ID}', $2::text)) as read_by (name, value)
  where value is not null
  on conflict (name) do update set value = excluded.value, step = l.step + 1, learned_at = excluded.learned_at
  where l.value is distinct from excluded.value`;

/** SQL: forgets the identifier's field, because what was read from it does not identify a snapshot. */
export const FORGET_SNAPSHOT_ID = `delete from catalog_internal.learned_names where name = '${SNAPSHOT_ID}'`;
