import { gunzipSync } from 'node:zlib';
import type { Answer, Partner } from './support.ts';

/** A line of the manifest file (partner rules 2.6). */
export interface Line {
  sku: string;
  sizes: number;
  hash: string | null;
  price_source: string;
  updated_at: string;
}

/** A delta response (partner rules 2.8). */
export interface Delta {
  changed: string[];
  removed: string[];
  now_live: string[];
  to_snapshot: string;
}

/** A bulk answer (partner rules 2.5). */
export interface Bulk {
  results: Record<string, unknown>;
  not_found: string[];
  deferred: string[];
  errors: string[];
  requested: number;
  deduped: number;
}

/** Fetches the file behind a manifest response, without a credential. */
export function file(partner: Partner, manifest: Answer): Promise<Answer> {
  return partner.raw('GET', String(manifest.json['url']), {});
}

/** Returns the lines of the newest manifest, by SKU. */
export async function lines(partner: Partner): Promise<Map<string, Line>> {
  const { bytes } = await file(partner, await partner.manifest());
  const rows = gunzipSync(bytes).toString('utf8').trimEnd().split('\n');
  return new Map(rows.map((row) => JSON.parse(row) as Line).map((line) => [line.sku, line]));
}

/** Returns what changed since a snapshot; fails if the partner rejects the call. */
export async function deltaSince(partner: Partner, since: string): Promise<Delta> {
  const answer = await partner.delta(since);
  if (answer.status !== 200) throw new Error(`delta: ${answer.status} ${answer.text}`);
  return answer.json as unknown as Delta;
}

/** Returns the body of a bulk call; fails if the partner rejects it. */
export async function envelope(partner: Partner, skus: readonly string[]): Promise<Bulk> {
  const answer = await partner.bulk(skus);
  if (answer.status !== 200) throw new Error(`bulk: ${answer.status} ${answer.text}`);
  return answer.json as unknown as Bulk;
}

/** Runs `happens`, builds a snapshot, and returns what the delta says about it. */
export async function deltaAfter(partner: Partner, happens: () => void): Promise<Delta> {
  const since = partner.sandbox.world.newestSnapshot() ?? '';
  happens();
  partner.sandbox.world.buildSnapshot();
  return deltaSince(partner, since);
}
