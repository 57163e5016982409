import type { Clock } from '../lib/clock.ts';
import { type FormKeeper, type FormMemory, NOTHING_LEARNED } from '../partner/entry-forms.ts';
import type { KnownFields } from '../partner/manifest-fields.ts';
import {
  type LearnedNames,
  type LearnedPrice,
  readLearnedNames,
  storeLearnedPrice,
} from '../store/catalog/learned-names.ts';
import type { Sql } from '../store/connection/db.ts';

/** What is known about the partner's undocumented names, stored in Postgres for all daemons. */
export interface NamesKept {
  /** Reads what others have learned. Throws if Postgres does not answer. */
  read(): Promise<void>;
  readonly formKeeper: FormKeeper;
  readonly knownFields: () => KnownFields;
}

/** Returns the memory of a client of the partner; `now` is by the client's clock. Pure. */
export function memoryOf(
  { price, also, others }: Pick<LearnedNames, 'price' | 'also' | 'others'>,
  now: number,
): FormMemory {
  if (price === null || price.answers === 0) return { ...NOTHING_LEARNED, others };
  const heldOf = ({ value, answers, missingMs }: Pick<LearnedPrice, 'value' | 'answers' | 'missingMs'>) => ({
    form: { field: value },
    answers,
    missingSince: missingMs === null ? null : now - missingMs,
  });
  return { ...heldOf(price), also: also === null ? null : heldOf(also), others };
}

const changeOf = ({
  form,
  answers,
  missingSince,
}: Pick<FormMemory, 'form' | 'answers' | 'missingSince'>) => ({
  value: form?.field ?? null,
  answers,
  isMissing: missingSince !== null,
});

/**
 * Keeps learned names in Postgres, which has the last word: if two daemons learn at once, the second one reads what
 * the first has stored. Call `read` before the first request, and again and again.
 */
export function keepNames(sql: Sql, clock: Clock): NamesKept {
  let memory = NOTHING_LEARNED;
  let step = 0;
  let fields: KnownFields = { url: null, snapshotId: null };

  async function read(): Promise<void> {
    const before = memory;
    const names = await readLearnedNames(sql);
    fields = names.manifest;
    // A change by this daemon that was stored meanwhile is newer than what was read.
    if (memory !== before || names.price?.step === step) return;
    step = names.price?.step ?? 0;
    memory = memoryOf(names, clock.monotonic());
  }

  return {
    read,
    knownFields: () => fields,
    formKeeper: {
      known: () => memory,
      async replace(before, by) {
        if (memory !== before) return false;
        const { also, others } = by;
        const change = {
          ...changeOf(by),
          also: also === null ? null : changeOf(also),
          others: others === before.others ? null : others,
        };
        const of = step;
        if (await storeLearnedPrice(sql, change, of)) {
          // If it was read before the store was confirmed, it is already known.
          if (step === of) [memory, step] = [by, of + 1];
          return true;
        }
        await read();
        return false;
      },
    },
  };
}
