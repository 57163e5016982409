import type { Clock } from '../lib/clock.ts';
import type { BulkAnswer, DeltaAnswer, LowestRecord, ManifestMeta } from './answers.ts';
import {
  parseBulk,
  parseRecords,
  readBulk,
  type Reading,
  readRecord,
  type WireNames,
} from './bulk-answer.ts';
import { answersSince, readDelta, parseDelta } from './delta-answer.ts';
import { ENDPOINTS } from './endpoints.ts';
import { EntryForms, type FormKeeper, type FormNews } from './entry-forms.ts';
import { PartnerError, type RequestOutcome, type Route, safeCause } from './errors.ts';
import { limitsOf } from './limits.ts';
import { readManifestMeta, parseManifestResponse } from './manifest-answer.ts';
import type { KnownFields } from './manifest-fields.ts';
import { checkBaseUrl } from './origin.ts';
import type { ProxySettings } from './proxy.ts';
import {
  type AnswerHead,
  type ApiRequest,
  createTransport,
  type Credentials,
  type Transport,
} from './transport.ts';

/**
 * One finished request, for metrics and the log. `ms` and `waitedMs` are milliseconds, the latter before the
 * request, for its permit; `skus` are those of a bulk call; `date` is the time at the partner, for clock skew.
 */
export interface RequestObservation {
  route: Route;
  outcome: RequestOutcome;
  ms: number;
  waitedMs: number | undefined;
  skus: number | undefined;
  status: number | null;
  date: Date | null;
}

/** All settings of the client; it reads nothing from the environment. */
export interface PartnerClientOptions {
  baseUrl: URL;
  /** Called before each request, so that a rotated credential takes effect without a restart (partner rule 5.4). */
  credentials: () => Credentials;
  /** Milliseconds for one request, including the body. */
  timeoutMs: number;
  /** Name of the SKU list in the bulk body (PARTNER_BULK_BODY_KEY; undocumented). */
  bodyKey: string;
  priceFields: readonly string[];
  skuField: string;
  manifestUrlField?: string | undefined;
  snapshotIdField?: string | undefined;
  allowInsecure: boolean;
  userAgent: string;
  /** Without it, connections are direct. */
  proxy?: ProxySettings | undefined;
  clock: Clock;
  /** Where the form of size_map's entries is stored; without it, the client keeps the form for as long as it lives. */
  formKeeper?: FormKeeper | undefined;
  /** Called if the entries of size_map no longer have their previous form. */
  onForm?: ((news: FormNews) => void) | undefined;
  /** The fields by which the last applied manifest was read. */
  knownFields?: (() => KnownFields) | undefined;
  observe?: ((observation: RequestObservation) => void) | undefined;
}

/**
 * The partner API as the mirror uses it. Each method sends one request under the given permit and settles it
 * exactly once, whatever happens. All reject with PartnerError; nothing is retried here.
 */
export interface PartnerClient {
  /** Metadata of the newest snapshot (partner rules 4.2, 2.7). */
  manifest(permit: Permit, signal?: AbortSignal): Promise<ManifestMeta>;
  /**
   * Changes since the snapshot `since` (partner rules 4.2, 2.8). Rejects with kind 'cached-answer' if the answer
   * starts from another snapshot, or if it reports nothing new and a cache has kept it for too long.
   */
  delta(permit: Permit, since: string, signal?: AbortSignal): Promise<DeltaAnswer>;
  /**
   * Records of up to 100 SKUs (partner rules 4.1, 2.5). Rejects with kind 'no-skus-read' if the partner says that
   * it was asked for no SKU and answers none, which happens because it ignores unknown body keys; with kind
   * 'cached-answer' if a cache has kept the answer, because its prices are of another time.
   */
  bulk(permit: Permit, skus: readonly string[], signal?: AbortSignal): Promise<BulkAnswer>;
  /** Record of one SKU (partner rules 4.1, 2.4). Rejects with 'sku-not-found' for code 0009. May come from a cache. */
  lowest(permit: Permit, sku: string, signal?: AbortSignal): Promise<LowestRecord>;
  /** Closes all connections; requests under way fail. */
  close(): Promise<void>;
}

/** Encodes the SKU as one path segment; null if no URL can carry it (dot segments, lone surrogates). */
function pathSegment(sku: string): string | null {
  if (sku === '' || sku === '.' || sku === '..' || !sku.isWellFormed()) return null;
  return encodeURIComponent(sku);
}

function asPartnerError(error: unknown, route: Route): PartnerError {
  if (error instanceof PartnerError) return error;
  const hint = 'nothing was sent: the credential could not be read';
  return new PartnerError('aborted', route, { hint, detail: 'not sent', cause: safeCause(error) });
}

class HttpPartnerClient implements PartnerClient {
  readonly #options: PartnerClientOptions;
  readonly #names: WireNames;
  readonly #forms: EntryForms;
  readonly #transport: Transport;

  constructor(options: PartnerClientOptions) {
    this.#options = options;
    this.#names = { priceFields: options.priceFields, skuField: options.skuField };
    const { priceFields, clock, formKeeper } = options;
    this.#forms = new EntryForms(priceFields, () => clock.monotonic(), formKeeper);
    this.#transport = createTransport(options);
  }

  async manifest(permit: Permit, signal?: AbortSignal): Promise<ManifestMeta> {
    const { manifestUrlField: urlField, snapshotIdField, knownFields } = this.#options;
    return this.#ask(permit, { ...manifestRequest(), signal }, (body, head) => {
      const reading = readManifestMeta(body, { urlField, snapshotIdField, known: knownFields?.() });
      if (reading.ok) return { ...reading.value, ...oldnessOf(head, MANIFEST_KEPT_SECONDS) };
      throw new PartnerError('unreadable', 'manifest', {
        status: 200,
        detail: reading.problem,
        hint: reading.hint,
      });
    });
  }

  async delta(permit: Permit, since: string, signal?: AbortSignal): Promise<DeltaAnswer> {
    return this.#ask(permit, { ...deltaRequest(since), signal }, (body, head) => {
      const answer = unwrap(readDelta(body, this.#names, since), 'delta');
      const oldness = oldnessOf(head, DELTA_KEPT_SECONDS);
      const problem = !answersSince(body, since)
        ? 'it names another snapshot than it was asked with'
        : oldness.isOld && (answer.toSnapshot ?? since) === since
          ? `nothing new ${head.ageSeconds} seconds ago`
          : null;
      if (problem === null) return { ...answer, ...oldness };
      throw new PartnerError('cached-answer', 'delta', { status: 200, detail: problem });
    });
  }

  async bulk(permit: Permit, skus: readonly string[], signal?: AbortSignal): Promise<BulkAnswer> {
    const request = { ...bulkRequest(new Map([[this.#options.bodyKey, skus]]), parseBulk), signal };
    const read = async (body: unknown, { ageSeconds }: AnswerHead) => {
      if (ageSeconds !== null && ageSeconds > BULK_KEPT_SECONDS)
        throw new PartnerError('cached-answer', 'bulk', { status: 200, detail: `${ageSeconds} seconds ago` });
      const { answer, news } = await this.#forms.read((entryForm, alsoForm, others) =>
        bulkAnswerOf(body, { ...this.#names, entryForm, alsoForm, others }, skus.length),
      );
      if (news !== null) this.#options.onForm?.(news);
      return answer;
    };
    return this.#ask(permit, request, read, skus.length);
  }

  async lowest(permit: Permit, sku: string, signal?: AbortSignal): Promise<LowestRecord> {
    const segment = pathSegment(sku);
    const { method, path: before } = ENDPOINTS.lowest;
    const path = `${before}/${segment ?? ''}`;
    const limits = limitsOf('lowest');
    const request: ApiRequest = { route: 'lowest', limits, method, path, parse: parseRecords, signal };
    const read = (body: unknown) => {
      const { held: entryForm, also: alsoForm, others } = this.#forms;
      const record = readRecord(body, { ...this.#names, entryForm, alsoForm, others });
      if ('sizes' in record) return record;
      throw new PartnerError('unreadable', 'lowest', { status: 200, detail: record.unreadable });
    };
    return this.#ask(permit, segment === null ? null : request, read);
  }

  async close(): Promise<void> {
    await this.#transport.close();
  }

  /** Sends, reads, settles the permit once, and reports. `request` is null if no URL can carry it. */
  async #ask<T>(
    permit: Permit,
    request: ApiRequest | null,
    read: (body: unknown, head: AnswerHead) => T | Promise<T>,
    skus?: number,
  ): Promise<T> {
    const { clock } = this.#options;
    const head: AnswerHead = { status: null, date: null, ageSeconds: null };
    const route = request?.route ?? 'lowest';
    const start = clock.monotonic();
    const finish = async (outcome: RequestOutcome) => {
      const ms = clock.monotonic() - start;
      try {
        await permit.settle(outcome);
      } finally {
        const { status, date } = head;
        this.#options.observe?.({ route, outcome, ms, waitedMs: permit.waitedMs, skus, status, date });
      }
    };
    let value: T;
    try {
      if (request === null)
        throw new PartnerError('bad-request', route, { detail: 'the SKU does not fit in a path' });
      value = await read(await this.#transport.request(request, head), head);
    } catch (error) {
      const failure = asPartnerError(error, route);
      // The partner's answer matters more than an unreachable pacer: the caller's next step depends on its kind.
      await finish(failure.kind).catch(() => undefined);
      throw failure;
    }
    await finish('ok');
    return value;
  }
}

/** Twice as long as the partner lets its answers be kept (partner rules 8.cache), so no obedient cache exceeds it. */
const DELTA_KEPT_SECONDS = 120;
const MANIFEST_KEPT_SECONDS = 600;
/** No cache may keep a bulk answer (partner rule 4.1.5). This allows for its time on the way. */
const BULK_KEPT_SECONDS = 60;

/** Returns whether a cache has kept an answer for longer than `mostSeconds`. */
function oldnessOf({ ageSeconds }: AnswerHead, mostSeconds: number): { isOld?: true } {
  return ageSeconds !== null && ageSeconds > mostSeconds ? { isOld: true } : {};
}

function unwrap<T>(reading: Reading<T>, route: Route): T {
  if (reading.ok) return reading.value;
  throw new PartnerError('unreadable', route, { status: 200, detail: reading.problem });
}

/** Reads a bulk answer to a call with `asked` SKUs. Throws PartnerError like `PartnerClient.bulk`. */
export function bulkAnswerOf(body: unknown, names: WireNames, asked: number): BulkAnswer {
  const answer = unwrap(readBulk(body, names), 'bulk');
  const { results, notFound, deferred, errors } = answer;
  const said = results.size + notFound.length + deferred.length + errors.length;
  if (answer.requested !== 0 || said > 0 || asked === 0) return answer;
  throw new PartnerError('no-skus-read', 'bulk', { status: 200, detail: 'requested: 0' });
}

/** Opens the client. Throws TypeError, without quoting the URL, if the base URL cannot be used (see checkBaseUrl). */
export function createPartnerClient(options: PartnerClientOptions): PartnerClient {
  const problem = checkBaseUrl(options.baseUrl, options);
  if (problem !== null) throw new TypeError(`the base URL of the partner API cannot be used: ${problem}`);
  return new HttpPartnerClient(options);
}

/**
 * Permission to send one request with the account's api_key (partner rule 8.rate: the rolling limit counts every
 * request). The pacer issues permits; the client takes one for each API request, so nothing can be sent unpaced.
 */
export interface Permit {
  /** How long the request waited for its permit, if known. */
  readonly waitedMs?: number;
  /** Tells the pacer how the request ended. Called once per permit. */
  settle(outcome: RequestOutcome): Promise<void>;
}

/* The three requests of the mirror, as they go over the wire. */

/** Asks for the newest manifest (partner rule 4.2.manifest). */
export const manifestRequest = (): ApiRequest => ({
  route: 'manifest',
  limits: limitsOf('manifest'),
  ...ENDPOINTS.manifest,
  parse: parseManifestResponse,
});

/** Asks what has changed since a snapshot (partner rule 4.2.delta). */
export const deltaRequest = (since: string): ApiRequest => ({
  route: 'delta',
  limits: limitsOf('delta'),
  method: ENDPOINTS.delta.method,
  path: `${ENDPOINTS.delta.path}?${new URLSearchParams({ since }).toString()}`,
  parse: parseDelta,
});

/**
 * Asks for the prices of SKUs (partner rule 4.1.bulk). `lists` contains them by the names under which they are
 * sent. fromEntries makes any name an own key, even `__proto__`.
 */
export const bulkRequest = (
  lists: ReadonlyMap<string, readonly string[]>,
  parse: ApiRequest['parse'],
): ApiRequest => ({
  route: 'bulk',
  limits: limitsOf('bulk', [...lists.values()].flat().length),
  ...ENDPOINTS.bulk,
  body: Object.fromEntries(lists),
  parse,
});
