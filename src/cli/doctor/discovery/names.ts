import type { KnownFields } from '../../../partner/manifest-fields.ts';
import type { EntryForm } from '../../../partner/size-map.ts';
import { harmless } from '../../../status/style.ts';
import type { CheckResult } from '../check.ts';
import type { Evidence, Names } from './plan.ts';

/** What the mirror has learned of names that the partner does not document, and reads answers by. */
export interface KnownNames {
  /** Null: no form of entries is held. */
  readonly price: EntryForm | null;
  /** That of records without any entry of it; null: none is held. */
  readonly also?: EntryForm | null;
  readonly manifest: KnownFields;
}

export const NOTHING_KNOWN: KnownNames = { price: null, manifest: { url: null, snapshotId: null } };

/** The five names as configured (null: found by shape), and what is known besides. */
export interface FieldNames extends Names {
  readonly price: readonly string[];
  readonly sku: string;
  readonly manifestUrl: string | null;
  readonly known: KnownNames;
}

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
