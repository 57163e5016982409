import { harmless } from '../../../status/style.ts';
import type { CheckResult } from '../check.ts';
import type { Evidence } from './plan.ts';

export interface Discovered {
  readonly findings: readonly CheckResult[];
  /** Variables and the values that the partner's answers have shown to be right. */
  readonly settings: Readonly<Record<string, string>>;
  readonly unknown: readonly string[];
}

/** What one check has found. */
export type Part = Partial<Discovered>;

export const shown = (name: string): string => `\`${harmless(name).slice(0, 64)}\``;
export const several = (names: readonly string[]): string => names.slice(0, 8).map(shown).join(', ');

/** The bodies of bulk calls that were answered. */
export const answered = ({ bulk }: Evidence): unknown[] =>
  bulk.filter(({ kind }) => kind === 'ok').map(({ body }) => body);
