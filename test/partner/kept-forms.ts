import { type FormKeeper, type FormMemory, NOTHING_LEARNED } from '../../src/partner/entry-forms.ts';

/** What several processes know about the form of entries, shared as in a database. */
export interface KeptForAll {
  memory: FormMemory;
  /** While true, nothing can be stored. */
  isDown: boolean;
  /**
   * Returns the keeper of a process that starts now. It hears of others' changes when it changes something itself.
   */
  reader(): FormKeeper & { hear(): void };
}

export function keptForAll(): KeptForAll {
  const kept: KeptForAll = {
    memory: NOTHING_LEARNED,
    isDown: false,
    reader() {
      let known = kept.memory;
      return {
        known: () => known,
        hear: () => {
          known = kept.memory;
        },
        async replace(before, by) {
          if (kept.isDown) throw new Error('down');
          const isLast = kept.memory === before && known === before;
          if (isLast) kept.memory = by;
          known = kept.memory;
          return isLast;
        },
      };
    },
  };
  return kept;
}
