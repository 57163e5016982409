import type { Metadata } from '../declared/metadata.ts';
import type { KnownFields } from './manifest-fields.ts';
import type { SecretUrl } from './secret-url.ts';
import type { OtherMember, EntryForm, SizeEntry } from './size-map.ts';

/** Metadata of the newest snapshot (partner rules 2.7). Counts and times are null if absent or unreadable. */
export interface ManifestMeta {
  snapshotId: string;
  url: SecretUrl;
  generatedAt: Date | null;
  skuCount: number | null;
  livePricedSkuCount: number | null;
  /** A cache has kept the answer for longer than the partner allows. */
  isOld?: true;
  /** The fields from which the URL and the identifier were read; null if the name is too long or not storable. */
  readBy: KnownFields;
}

/** Changes since a snapshot (partner rules 2.8). Long lists may name a SKU more than once (MAX_EACH_ONCE). */
export interface DeltaAnswer {
  changed: string[];
  removed: string[];
  nowLive: string[];
  /** Null if the answer names none, which is valid only if it reports nothing. */
  toSnapshot: string | null;
  /** SKUs skipped because no table could hold them. */
  skipped: number;
  /** A cache has kept the answer for longer than the partner allows: it is true, but more may have changed since. */
  isOld?: true;
}

/** A lowest-price record (partner rules 2.4). Empty `sizes` mean a withdrawal; `product` is the object as it came. */
export interface LowestRecord {
  sizes: Map<string, SizeEntry>;
  metadata: Metadata;
  product: Record<string, unknown> | null;
}

/** A record that says nothing certain about its SKU. `unreadable` gives the reason in our own words. */
export interface UnreadableRecord {
  unreadable: string;
  /** It makes no claim of its own: if a list of the answer contains the SKU, only the list counts. */
  isPlaceholder?: true;
}

/** A bulk answer (partner rules 2.5) as it came. The caller checks whether it adds up to what was asked. */
export interface BulkAnswer {
  results: Map<string, LowestRecord | UnreadableRecord>;
  notFound: string[];
  deferred: string[];
  errors: string[];
  requested: number | null;
  /** Where the entries of its records carry a price (formOf); null if none has one. */
  form?: EntryForm | null;
  /** Where records without any entry of that form carry theirs (otherFormOf); null if there are none. */
  also?: EntryForm | null;
  /** What is known after this answer of members of `size_map` that are not sizes (noteOthers). */
  others?: readonly OtherMember[];
  /** Names of the members that were left out of its records for that reason. */
  notSizes?: readonly string[];
}
