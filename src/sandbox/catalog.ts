import type { Ambiguities, SpokenLine } from './ambiguities.ts';
import { type Answer, invalid, type PlainCall, readObject } from './answer.ts';
import { type Presigner, snapshotOf } from './files.ts';
import type { LiveLimiter } from './gate.ts';
import type { Settings } from './options.ts';
import { fileErrorReply, fileReply, type Reply } from './respond.ts';
import {
  bulkBody,
  type BulkOutcome,
  codeBody,
  deltaBody,
  manifestBody,
  manifestLine,
  recordBody,
  GATEWAY_TIMEOUT,
  type Json,
  SERVICE_ERROR,
} from './wire.ts';
import type { World } from './world.ts';

const BULK_MAX_SKUS = 100;

/** What the catalog's handlers work on. `base` is the sandbox's own address, for presigned URLs. */
export interface CatalogContext {
  settings: Settings;
  world: World;
  ceiling: LiveLimiter;
  presigner: Presigner;
  /** Null if the sandbox answers plainly. */
  ambiguities: Ambiguities | null;
  base: string;
}

/** Answers GET /partner/catalog/manifest (partner rules 4.2, 2.7). */
export function answerManifest(context: CatalogContext): Answer {
  const { settings, world, presigner, ambiguities, base } = context;
  const snapshot = world.servable();
  if (typeof snapshot === 'string') return { status: 503, body: codeBody(snapshot) };
  const expiresAt = settings.now() + settings.urlTtlMs;
  const url = base + presigner.sign(snapshot.id, expiresAt, world.urlGeneration);
  const body = manifestBody(settings.dialect, snapshot, url, expiresAt);
  return { status: 200, body: ambiguities?.manifest(body) ?? body };
}

/** Answers GET /partner/catalog/delta (partner rules 4.2, 2.8). */
export function answerDelta(context: CatalogContext, since: string | null): Answer {
  const { settings, world, ambiguities } = context;
  const from = ambiguities?.understood(since) ?? since;
  const delta = world.delta(from);
  if (typeof delta === 'string') return { status: delta === '0014' ? 503 : 400, body: codeBody(delta) };
  const body = deltaBody(settings.dialect, delta);
  return ambiguities?.delta(body, from, delta) ?? { status: 200, body };
}

/**
 * Answers GET /partner/lowest/{sku} (partner rules 4.1). A live-priced SKU takes a live computation. If the ceiling
 * refuses it, the answer is the transient 500 (what the partner does then is not documented).
 */
export function answerLowest(context: CatalogContext, sku: string): Answer {
  const { settings, world, ceiling } = context;
  const quote = world.quote(sku);
  if (quote.result === 'not_found') return { status: 400, body: codeBody('0009'), skus: [sku] };
  const refused = quote.result === 'failing' || (quote.live && !ceiling.take(settings.now()));
  if (refused) return { status: 500, body: SERVICE_ERROR, skus: [sku] };
  return {
    status: 200,
    body: spoken(context, sku, recordBody(settings.dialect, quote.sizes, quote.details)),
    skus: [sku],
    liveComputed: Number(quote.live),
  };
}

/** Answers POST /partner/lowest/bulk (partner rules 4.1, 2.5). `text` is the request's body. */
export function answerBulk(context: CatalogContext, text: string): Answer {
  const asked = readSkus(text, context);
  if (typeof asked === 'string') return invalid(asked);
  const { settings, world, ceiling } = context;
  if (asked.length > settings.bulkLimit) return { status: 504, body: GATEWAY_TIMEOUT, skus: asked };
  if (asked.some((sku) => world.refuses(sku))) return { ...invalid('a sku is not valid'), skus: asked };
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
    if (quote.result === 'not_found') outcome.notFound.push(sku);
    else if (quote.result === 'failing') outcome.errors.push(sku);
    else if (quote.live && (liveComputed >= settings.liveBudget || !ceiling.take(settings.now()))) {
      outcome.deferred.push(sku);
    } else {
      liveComputed += Number(quote.live);
      const body = recordBody(settings.dialect, quote.sizes, quote.details);
      outcome.bodies.set(sku, spoken(context, sku, body));
    }
  }
  return { status: 200, body: bulkBody(settings.dialect, outcome), skus: asked, liveComputed };
}

/** Reads the list of SKUs in a bulk body, or returns what is wrong with it. Ignores unknown keys. */
function readSkus(text: string, { settings, ambiguities }: CatalogContext): string[] | string {
  const key = settings.dialect.bulkBodyKey;
  const body = readObject(text);
  if (typeof body === 'string') return body;
  const skus = Object.hasOwn(body, key) ? body[key] : undefined;
  if (skus === undefined && ambiguities?.ignoresMissingList()) return [];
  if (!Array.isArray(skus)) return `${key} must be an array`;
  if (!skus.every((sku) => typeof sku === 'string')) return `each value in ${key} must be a string`;
  return skus.length > BULK_MAX_SKUS ? `${key} must contain no more than ${BULK_MAX_SKUS} elements` : skus;
}

function spoken({ ambiguities }: CatalogContext, sku: string, body: Json): Json {
  return ambiguities?.record(sku, body) ?? body;
}

/** Answers GET of a presigned manifest URL (partner rules 2.7, 4.2.9). */
export function manifestFile(
  { settings, world, presigner, ambiguities }: CatalogContext,
  { path, query }: PlainCall,
): Reply {
  const now = settings.now();
  const refusal = presigner.check(path, query, now, world.urlGeneration);
  if (refusal !== null) return fileErrorReply(refusal, now);
  const lines = world.lines(snapshotOf(path) ?? '');
  if (lines === null) return fileErrorReply('freed', now);
  const { dialect } = settings;
  const write = (line: SpokenLine): string => manifestLine(dialect, line);
  return fileReply(dialect, ambiguities?.file(lines, write) ?? Iterator.from(lines).map(write), now);
}
