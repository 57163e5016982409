import type { Clock } from '../lib/clock.ts';
import { bareHost } from '../lib/host-name.ts';
import { type Attributes, NO_TRACER, type Span, type Tracer } from '../lib/tracer.ts';
import type { Acquired } from '../pace/permit.ts';
import type { BulkAnswer } from '../partner/answers.ts';
import { ENDPOINTS, type Endpoint } from '../partner/endpoints.ts';
import { PartnerError } from '../partner/errors.ts';
import type { Applied } from '../store/answer/apply.ts';
import type { Claim, ClaimedSku } from '../store/ledger/due.ts';
import type { SyncContext } from './context.ts';
import { PATIENCE_MS, type TaskOutcome } from './outcome.ts';

/* Traces the work of sync (docs/traces.md). Nothing here decides anything. */

/** Collectors refuse spans that began long ago; an attribute also gives the seconds for which a SKU was due. */
const MAX_DUE_MS = 6 * 3_600_000;
/** Reasons that stand for a report of the delta. */
const REPORTED = new Set(['changed', 'removed']);

export async function tracedTask(
  { tracer }: Pick<SyncContext, 'tracer'>,
  name: string,
  work: () => Promise<TaskOutcome>,
): Promise<TaskOutcome> {
  return await tracer.span(name, {}, async (span) => {
    const outcome = await work();
    span.set({ 'catalog_mirror.outcome': outcome.kind });
    if (outcome.kind === 'failed') span.fail(outcome.because);
    return outcome;
  });
}

export async function acquireTraced(
  { tracer, pacer }: Pick<SyncContext, 'tracer' | 'pacer'>,
  lane: string,
  signal?: AbortSignal,
): Promise<Acquired> {
  return await tracer.span('pace.wait', {}, async (span) => {
    const acquired = await pacer.acquire(lane, PATIENCE_MS, signal);
    span.set(permitFacts(lane, acquired));
    return acquired;
  });
}

export function permitFacts(lane: string, acquired: Acquired): Attributes {
  const asked = { 'catalog_mirror.lane': lane, 'catalog_mirror.permit': acquired.kind };
  return acquired.kind === 'wait'
    ? { ...asked, 'catalog_mirror.put_off': acquired.because }
    : { ...asked, 'catalog_mirror.waited_ms': Math.round(acquired.permit.waitedMs ?? 0) };
}

/**
 * Sends a request to the partner in an HTTP client's span, which says what was asked, and no query, header or
 * body.
 */
export async function callTraced<T>(
  { tracer, settings }: Pick<SyncContext, 'tracer' | 'settings'>,
  route: Endpoint,
  facts: Attributes,
  send: (span: Span) => Promise<T>,
): Promise<T> {
  const work = async (span: Span) => {
    try {
      const answer = await send(span);
      span.set({ 'http.response.status_code': 200 });
      return answer;
    } catch (error) {
      if (error instanceof PartnerError)
        span.set({ 'http.response.status_code': error.status, 'catalog_mirror.partner_code': error.code });
      throw error;
    }
  };
  const request = tracer === NO_TRACER ? {} : requestFacts(settings.partner.baseUrl, route);
  return await tracer.span('partner.call', { ...request, ...facts }, work, { kind: 'client' });
}

function requestFacts(baseUrl: string, route: Endpoint): Attributes {
  const { hostname, port, protocol } = new URL(baseUrl);
  const { method, path } = ENDPOINTS[route];
  return {
    'http.request.method': method,
    'url.full': `${baseUrl}${path}`,
    'url.template': path,
    'server.address': bareHost(hostname),
    'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
    'catalog_mirror.route': route,
  };
}

export const answerFacts = ({ results, notFound, deferred, errors }: BulkAnswer): Attributes => ({
  'catalog_mirror.skus.resolved': results.size,
  'catalog_mirror.skus.not_found': notFound.length,
  'catalog_mirror.skus.deferred': deferred.length,
  'catalog_mirror.skus.errors': errors.length,
});

/**
 * Applies an answer in a span, with a child for each of its round trips; the second notifies listeners if there is
 * something new.
 */
export async function applyTraced(
  { tracer, clock }: Pick<SyncContext, 'tracer' | 'clock'>,
  apply: () => Promise<Applied>,
): Promise<Applied> {
  return await tracer.span('apply', {}, async (span) => {
    const from = clock.monotonic();
    const applied = await apply();
    const { accepted, priceChanges, metadataChanges, times } = applied;
    span.set({
      'catalog_mirror.skus.accepted': accepted,
      'catalog_mirror.price_changes': priceChanges,
      'catalog_mirror.metadata_changes': metadataChanges,
    });
    tracer.past('compare', {}, from, times.comparedAt);
    if (times.notified) tracer.past('notify', NOTIFY, times.comparedAt, times.committedAt, 'producer');
    else tracer.past('commit', {}, times.comparedAt, times.committedAt);
    return applied;
  });
}

const NOTIFY: Attributes = {
  'messaging.system': 'postgresql',
  'messaging.operation.type': 'send',
  'messaging.destination.name': 'catalog_changes',
};

/** Returns the key under which the span that made SKUs due at this time is remembered. */
export const dueKey = (at: Date): string => `due ${at.getTime()}`;

/** The beginning of a call's trace. */
export interface Due {
  readonly forMs: number;
  readonly reason: string | undefined;
  /** Keys of the spans that may have made its SKUs due. */
  readonly keys: readonly string[];
}

interface DueClaim extends Pick<Claim, 'askedAt'> {
  readonly skus: readonly Pick<ClaimedSku, 'dueAt' | 'reason'>[];
}

/**
 * Returns since when the call was due: since the first delta report that it answers, else since its first SKU was
 * due. Pure.
 */
export function dueOf({ askedAt, skus }: DueClaim): Due {
  const reported = skus.filter(({ reason }) => REPORTED.has(reason));
  const [first, ...others] = reported.length > 0 ? reported : skus;
  if (first === undefined) return { forMs: 0, reason: undefined, keys: [] };
  const oldest = others.reduce((a, b) => (b.dueAt < a.dueAt ? b : a), first);
  return {
    forMs: Math.max(0, askedAt.getTime() - oldest.dueAt.getTime()),
    reason: oldest.reason,
    keys: [...new Set(skus.map(({ dueAt }) => dueKey(dueAt)))],
  };
}

/** Keeps the steps before a claim, which become part of a call only once there is one. */
export class CallSteps {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly began: number;
  readonly #steps: Parameters<Tracer['past']>[] = [];

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.began = clock.monotonic();
  }

  async time<T>(
    name: string,
    work: () => Promise<T>,
    facts: (done: T) => Attributes = () => ({}),
  ): Promise<T> {
    const from = this.#clock.monotonic();
    const done = await work();
    this.#steps.push([name, facts(done), from, this.#clock.monotonic()]);
    return done;
  }

  tell(tracer: Tracer): void {
    for (const step of this.#steps) tracer.past(...step);
  }
}

/** Traces a bulk call from its due time on as a trace of its own, with the steps that led to it. */
export async function traceCall<T>(
  { tracer, clock }: Pick<SyncContext, 'tracer' | 'clock'>,
  steps: CallSteps,
  claim: Claim,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  if (tracer === NO_TRACER) return await tracer.span('reprice', {}, work);
  const { forMs, reason, keys } = dueOf(claim);
  const facts = { 'catalog_mirror.due.reason': reason, 'catalog_mirror.due.seconds': forMs / 1000 };
  const traceFrom = Math.min(steps.began, clock.monotonic() - Math.min(forMs, MAX_DUE_MS));
  const whole = {
    ...facts,
    'catalog_mirror.claim': claim.number,
    'catalog_mirror.skus.asked': claim.skus.length,
  };
  const tracedWork = async (span: Span) => {
    if (traceFrom < steps.began) tracer.past('due', facts, traceFrom, steps.began);
    steps.tell(tracer);
    return await work(span);
  };
  return await tracer.span('reprice', whole, tracedWork, { traceFrom, links: keys });
}
