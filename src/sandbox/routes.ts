import type { Presigner } from './files.ts';
import type { Route } from './faults.ts';
import type { LiveCeiling } from './limits.ts';
import type { Settings } from './options.ts';
import {
  bulkBody,
  codeBody,
  deltaBody,
  manifestBody,
  recordBody,
  SERVICE_ERROR,
  type BulkOutcome,
  type Json,
} from './wire.ts';
import type { World } from './world.ts';

const BULK_MAX_SKUS = 100;
const LOWEST_PREFIX = '/partner/lowest/';

/** What the handlers work on. `base` is the sandbox's own address, for presigned URLs. */
export interface RouteContext {
  settings: Settings;
  world: World;
  ceiling: LiveCeiling;
  presigner: Presigner;
  base: string;
}

/** A handler's answer, with what the request record tells about it. */
export interface Answer {
  status: number;
  body: object;
  cacheControl?: string;
  skus?: string[];
  liveComputed?: number;
}

/** The route of an API request, and the SKU of a single lookup as the path has it (still percent-encoded). */
export function matchRoute(method: string, path: string): { route: Route; rawSku?: string } {
  if (method === 'GET' && path === '/partner/catalog/manifest') return { route: 'manifest' };
  if (method === 'GET' && path === '/partner/catalog/delta') return { route: 'delta' };
  if (method === 'POST' && path === '/partner/lowest/bulk') return { route: 'bulk' };
  const rawSku = path.startsWith(LOWEST_PREFIX) ? path.slice(LOWEST_PREFIX.length) : '';
  if (method === 'GET' && rawSku !== '' && !rawSku.includes('/')) return { route: 'lowest', rawSku };
  return { route: 'unknown' };
}

/** GET /partner/catalog/manifest (specification 4.2, 2.7). */
export function answerManifest(context: RouteContext): Answer {
  const { settings, world, presigner, base } = context;
  const snapshot = world.servable();
  if (typeof snapshot === 'string') return { status: 503, body: codeBody(snapshot) };
  const expiresAt = settings.now() + settings.urlTtlMs;
  const url = base + presigner.sign(snapshot.id, expiresAt, world.urlGeneration);
  return {
    status: 200,
    body: manifestBody(settings.dialect, snapshot, url, expiresAt),
    cacheControl: 'private, max-age=300',
  };
}

/** GET /partner/catalog/delta (specification 4.2, 2.8). */
export function answerDelta(context: RouteContext, since: string | null): Answer {
  const delta = context.world.delta(since);
  if (typeof delta === 'string') return { status: delta === '0014' ? 503 : 400, body: codeBody(delta) };
  const body = deltaBody(context.settings.dialect, delta);
  return { status: 200, body, cacheControl: 'public, max-age=60, s-maxage=60' };
}

/**
 * GET /partner/lowest/{sku} (specification 4.1). A live-priced SKU takes a live computation; where the ceiling refuses,
 * the answer is the transient 500 (what the partner does then is not shown).
 */
export function answerLowest(context: RouteContext, rawSku: string): Answer {
  const { settings, world, ceiling } = context;
  const sku = decodeSku(rawSku);
  if (sku === null) return invalid('sku is not a valid path segment');
  const quote = world.quote(sku);
  if (quote.fate === 'not_found') return { status: 400, body: codeBody('0009'), skus: [sku] };
  const refused = quote.fate === 'failing' || (quote.live && !ceiling.take(settings.now()));
  if (refused) return { status: 500, body: SERVICE_ERROR, skus: [sku] };
  return {
    status: 200,
    body: recordBody(settings.dialect, quote.sizes, quote.details),
    cacheControl: 'public, max-age=300, s-maxage=600, stale-while-revalidate=120',
    skus: [sku],
    liveComputed: Number(quote.live),
  };
}

/** POST /partner/lowest/bulk (specification 4.1, 2.5). `text` is the request's body. */
export function answerBulk(context: RouteContext, text: string): Answer {
  const asked = readSkus(text, context.settings.dialect.bulkBodyKey);
  if (typeof asked === 'string') return invalid(asked);
  const { settings, world, ceiling } = context;
  const unique = new Set(asked);
  const outcome: BulkOutcome = {
    bodies: new Map(),
    notFound: [],
    deferred: [],
    errors: [],
    requested: asked.length,
    deduped: unique.size,
  };
  let liveComputed = 0;
  for (const sku of unique) {
    const quote = world.quote(sku);
    if (quote.fate === 'not_found') outcome.notFound.push(sku);
    else if (quote.fate === 'failing') outcome.errors.push(sku);
    else if (quote.live && (liveComputed >= settings.liveBudget || !ceiling.take(settings.now()))) {
      outcome.deferred.push(sku);
    } else {
      liveComputed += Number(quote.live);
      outcome.bodies.set(sku, recordBody(settings.dialect, quote.sizes, quote.details));
    }
  }
  const body = bulkBody(settings.dialect, outcome);
  return { status: 200, body, cacheControl: 'no-store', skus: asked, liveComputed };
}

/** A validation failure (specification 7.2): the body repeats the status. */
export function invalid(message: string): Answer {
  return { status: 400, body: { statusCode: 400, message } };
}

/** The list of SKUs in a bulk body, or what is wrong with it. Unknown keys are ignored. */
function readSkus(text: string, key: string): string[] | string {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return 'body must be valid JSON';
  }
  const skus: unknown =
    typeof body === 'object' && body !== null && Object.hasOwn(body, key) ? (body as Json)[key] : undefined;
  if (!Array.isArray(skus)) return `${key} must be an array`;
  if (!skus.every((sku) => typeof sku === 'string')) return `each value in ${key} must be a string`;
  return skus.length > BULK_MAX_SKUS ? `${key} must contain no more than ${BULK_MAX_SKUS} elements` : skus;
}

function decodeSku(rawSku: string): string | null {
  try {
    return decodeURIComponent(rawSku);
  } catch {
    return null;
  }
}
