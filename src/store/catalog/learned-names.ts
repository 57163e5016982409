import { z } from 'zod';
import type { Sql } from '../connection/db.ts';
import { isOwnMirror } from '../connection/own-mirror.ts';

/*
 * What answers have shown of the names that the partner does not document, for all daemons and after them
 * (catalog_internal.learned_names): the field that entries of size_map have their price in, its members that are no
 * sizes, and the fields by which the last applied manifest was read. What follows from them is partner/entry-forms.ts,
 * partner/other-members.ts and partner/manifest-fields.ts.
 */

/** A field that entries have their price in. */
interface LearnedField {
  /** Null: entries are numbers by themselves. */
  readonly value: string | null;
  /** Answers in a row that had it. */
  readonly answers: number;
}

/** The same, as it was stored. */
interface HeldField extends LearnedField {
  /** For how long no answer has had it, by Postgres's clock; null: the last one had. */
  readonly missingMs: number | null;
}

/** The field that entries have their price in. */
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
/** Members of `size_map` that are no sizes, with what has shown it. */
type LearnedMembers = z.infer<typeof learnedMembers>;

export interface LearnedNames {
  /** Null: nothing is learned. */
  readonly price: LearnedPrice | null;
  /** That of records without any entry of it, and the answers that had both; null: there were none. */
  readonly also: HeldField | null;
  readonly others: LearnedMembers;
  /** Paths in the manifest response; null: none is known. */
  readonly manifest: { readonly url: string | null; readonly snapshotId: string | null };
}

const PRICE = 'price';
const ALSO = 'price_also';
const OTHERS = 'other_members';
const MANIFEST_URL = 'manifest_url';
const SNAPSHOT_ID = 'snapshot_id';

/** A clock that was set back meanwhile makes no time negative. Of nulls GREATEST takes no notice. */
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

/** What a later version may have stored in another way is learned anew. */
function membersOf(text: string | null | undefined): LearnedMembers {
  try {
    return learnedMembers.safeParse(JSON.parse(text ?? '[]')).data ?? [];
  } catch {
    return [];
  }
}

/** What is to be known of the field from now on; `isMissing`: no answer has it any longer. */
export interface LearnedPriceChange extends LearnedFieldChange {
  readonly also: LearnedFieldChange | null;
  /** Null: nothing has changed. */
  readonly others: LearnedMembers | null;
}

interface LearnedFieldChange extends LearnedField {
  readonly isMissing: boolean;
}

/**
 * Stores the field as the step after `step` (0: nothing was learned). Returns false, with nothing changed, if another
 * daemon has stored that step already, or the mirror has become another account's. It is one statement, so that no
 * client that falls silent can hold its lock.
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

/** SQL, in a manifest's own transaction: by which fields it was read. $1 that of the URL, $2 of the identifier. */
export const REMEMBER_FIELDS = `
  insert into catalog_internal.learned_names as l (name, value)
  select * from (values ('${MANIFEST_URL}', $1::text), ('${SNAPSHOT_ID}', $2::text)) as read_by (name, value)
  where value is not null
  on conflict (name) do update set value = excluded.value, step = l.step + 1, learned_at = excluded.learned_at
  where l.value is distinct from excluded.value`;

/** SQL: the identifier is to be found anew, as what was read for it is no snapshot's. */
export const FORGET_SNAPSHOT_ID = `delete from catalog_internal.learned_names where name = '${SNAPSHOT_ID}'`;
