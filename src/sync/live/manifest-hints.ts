import type { ManifestRecords, HintableLines } from '../../store/catalog/manifest-hints.ts';
import type { ManifestSource } from '../../store/live/hint-state.ts';
import { UNTESTED } from '../../store/live/hint-state.ts';
import { mostWaiting } from './hints.ts';

/* What lines of manifests tell of live SKUs is a hint like any other (hints.ts), with bounds of its own. Pure. */

/**
 * A source that hints at a greater part of the live lines says nothing: every line has the time of the build, say.
 */
const TELLING_PART = 0.5;

/** How many of the SKUs that lines tell of are hinted at, at most, by source. */
export function mostByManifest(
  records: ManifestRecords,
  { hintable, live }: HintableLines,
): Record<ManifestSource, number> {
  const most = (source: ManifestSource) => {
    const { waiting, ...record } = records.get(source) ?? { ...UNTESTED, waiting: 0 };
    if (hintable[source] > TELLING_PART * live) return 0;
    return Math.max(0, mostWaiting(record) - waiting);
  };
  return { 'manifest.updated_at': most('manifest.updated_at'), 'manifest.sizes': most('manifest.sizes') };
}
