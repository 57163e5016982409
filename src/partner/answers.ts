import type { Metadata } from '../declared/metadata.ts';
import type { KnownFields } from './manifest-fields.ts';
import type { SecretUrl } from './secret-url.ts';
import type { OtherMember, EntryForm, SizeEntry } from './size-map.ts';

/** Metadata of the newest snapshot (partner rules 2.7). Counts and times are null where absent or unreadable. */
export interface ManifestMeta {
  snapshotId: string;
  url: SecretUrl;
  generatedAt: Date | null;
  skuCount: number | null;
  livePricedSkuCount: number | null;
  /** A cache has kept it for longer than the partner allows. */
  isOld?: true;
  /** The fields that the URL and the identifier were read from; null where the name is too long or not storable. */
  readBy: KnownFields;
}

/** What changed since a snapshot (partner rules 2.8). Each list names a SKU once. */
export interface DeltaAnswer {
  changed: string[];
  removed: string[];
  nowLive: string[];
  /** Null where the answer names none, which it may only where nothing is new. */
  toSnapshot: string | null;
  /** SKUs skipped because no table could hold them. */
  skipped: number;
  /** A cache has kept it for longer than the partner allows: it is true, and not the end. */
  isOld?: true;
}

/** A lowest-price record (partner rules 2.4). An empty `sizes` is a withdrawal; `product` is the object as it came. */
export interface LowestRecord {
  sizes: Map<string, SizeEntry>;
  metadata: Metadata;
  product: Record<string, unknown> | null;
}

/** A record that says nothing certain about its SKU; `unreadable` is why, in our words. */
export interface UnreadableRecord {
  unreadable: string;
  /** It makes no claim of its own: where a list of the answer names the SKU, that alone counts. */
  isPlaceholder?: true;
}

/** A bulk answer (partner rules 2.5) as it came: whether it adds up to what was asked is the caller's to check. */
export interface BulkAnswer {
  results: Map<string, LowestRecord | UnreadableRecord>;
  notFound: string[];
  deferred: string[];
  errors: string[];
  requested: number | null;
  /** Where the entries of its records carry a price (formOf); null where none has any. */
  form?: EntryForm | null;
  /** Where those records have theirs that have no entry of that form (otherFormOf); null where there are none. */
  also?: EntryForm | null;
  /** What is known, after it, of members of `size_map` that are no sizes (noteOthers). */
  others?: readonly OtherMember[];
  /** Names of those that were left out of its records. */
  notSizes?: readonly string[];
}
