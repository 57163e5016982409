import type { Rule } from './rules.ts';

/**
 * One setting. It has a `default`, or says in `unset` what applies without it (its value is null then), or has to be
 * given.
 */
export interface Setting {
  /**
   * Where its value is in `Config`: a group, and a name within it. Durations are in milliseconds, and their names end
   * in Ms.
   */
  readonly path: `${string}.${string}`;
  readonly rule: Rule;
  /** The default, as a person would write it into the environment. */
  readonly default?: string;
  readonly unset?: string;
  /** Its value is never shown, and may be given as a file (`NAME_FILE`) that is read again. */
  readonly secret?: true;
  /** A connection URL, which may carry a password and ask for TLS. */
  readonly connection?: true;
  readonly meaning: string;
}
