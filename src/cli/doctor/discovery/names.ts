import type { KnownFields } from '../../../partner/manifest-fields.ts';
import type { EntryForm } from '../../../partner/size-map.ts';

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
export interface FieldNames {
  readonly bulkBodyKey: string;
  readonly price: readonly string[];
  readonly sku: string;
  readonly manifestUrl: string | null;
  readonly snapshotId: string | null;
  readonly known: KnownNames;
}
