import { parseDelta } from './delta-answer.ts';
import { limitsOf } from './limits.ts';
import { parseManifestResponse } from './manifest-answer.ts';
import type { ApiRequest } from './transport.ts';

/* The three questions that the mirror asks the partner, as they go over the wire. */

/** What the newest manifest is (partner rule 4.2.manifest). */
export const manifestRequest = (): ApiRequest => ({
  route: 'manifest',
  limits: limitsOf('manifest'),
  method: 'GET',
  path: '/partner/catalog/manifest',
  parse: parseManifestResponse,
});

/** What has changed after a snapshot (partner rule 4.2.delta). */
export const deltaRequest = (since: string): ApiRequest => ({
  route: 'delta',
  limits: limitsOf('delta'),
  method: 'GET',
  path: `/partner/catalog/delta?${new URLSearchParams({ since }).toString()}`,
  parse: parseDelta,
});

/**
 * What SKUs cost now (partner rule 4.1.bulk): lists of them by the names under which they are sent. fromEntries makes
 * an own key of any name, `__proto__` included.
 */
export const bulkRequest = (
  lists: ReadonlyMap<string, readonly string[]>,
  parse: ApiRequest['parse'],
): ApiRequest => ({
  route: 'bulk',
  limits: limitsOf('bulk', [...lists.values()].flat().length),
  method: 'POST',
  path: '/partner/lowest/bulk',
  body: Object.fromEntries(lists),
  parse,
});
