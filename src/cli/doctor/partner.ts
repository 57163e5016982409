import type { Config } from '../../config/config.ts';
import { formatAge } from '../../lib/duration.ts';
import { count } from '../../lib/format.ts';
import type { PutOff } from '../../pace/permit.ts';
import { letsThrough, refuses } from '../../pace/policy.ts';
import { NO_ANSWER, PartnerError, type RequestOutcome } from '../../partner/errors.ts';
import { manifestCandidates, readManifestMeta } from '../../partner/manifest-answer.ts';
import { readManifestFile } from '../../partner/manifest-file.ts';
import { VERSION } from '../../version.ts';
import { fail, type CheckResult, judgeSkew, ok, warn } from './check.ts';
import { discovered } from './discovery/checks.ts';
import {
  type KnownNames,
  type Evidence,
  nextQuestion,
  type Question,
  type SkuSample,
} from './discovery/plan.ts';
import type { Refused, PermitSource } from './permits.ts';
import { createRawClient, type RawClient, type RawAnswer } from './raw-client.ts';

export interface SentRequest {
  readonly route: string;
  readonly outcome: RequestOutcome;
}

export interface PartnerReport {
  readonly findings: readonly CheckResult[];
  readonly requests: readonly SentRequest[];
  readonly settings: Readonly<Record<string, string>>;
  readonly unknown: readonly string[];
}

/** What the mirror's database knows: the stored delta token, SKUs to sample, and undocumented names. */
export interface OwnMirror {
  readonly token: string | null;
  readonly known: KnownNames;
  readonly skus: Pick<SkuSample, 'snapshot' | 'live'>;
}

export interface AskOptions {
  readonly config: Config;
  readonly permits: PermitSource;
  readonly mirror: OwnMirror;
  readonly most: number;
  readonly now: () => number;
}

const FILE_LINES = 400;

/** Asks the partner what the evidence so far leaves open, in at most `most` requests, each with a permit. */
export async function askPartner(options: AskOptions): Promise<PartnerReport> {
  const { config, now } = options;
  const { partner } = config;
  const rawClient = createRawClient(
    {
      baseUrl: new URL(partner.baseUrl),
      credentials: () => ({ apiKey: partner.apiKey.read(), secret: partner.secret.read() }),
      timeoutMs: partner.timeoutMs,
      userAgent: `catalog-mirror/${VERSION} doctor`,
      proxy: partner.proxy,
    },
    now,
  );
  try {
    return await converse(options, rawClient);
  } finally {
    await rawClient.close();
  }
}

async function converse(options: AskOptions, rawClient: RawClient): Promise<PartnerReport> {
  const { config, permits, mirror, most, now } = options;
  const { fields } = config.partner;
  const answers: RawAnswer[] = [];
  const stopped: CheckResult[] = [];
  const unasked: string[] = [];
  let evidence: Evidence = { manifest: null, sample: null, bulk: [], delta: [], ownToken: mirror.token };
  for (;;) {
    const question = nextQuestion(evidence, fields);
    if (question.ask === 'nothing') break;
    if (question.ask === 'sample') {
      evidence = { ...evidence, sample: await takeSample(config, evidence, mirror) };
      continue;
    }
    if (answers.length >= most) {
      unasked.push(
        `${'why' in question ? question.why : question.ask}: not checked, all ${most} requests are used`,
      );
      break;
    }
    const taken = await permits.take();
    if (taken.kind === 'wait') {
      stopped.push(putOff(taken.because, taken.forMs, await permits.refused(), now()));
      break;
    }
    const answer = await send(rawClient, question, taken.permit);
    answers.push(answer);
    evidence = noted(evidence, question, answer, mirror.known);
    const { error } = answer;
    if (error === null) continue;
    if (refuses(error.kind)) {
      stopped.push(refusal(error, await permits.refused(), now()));
      break;
    }
    if (NO_ANSWER.has(error.kind) || error.kind === 'not-a-route') {
      stopped.push(fail(error.route, error.message, error.hint));
      break;
    }
    stopped.push(...otherError(error));
    if (question.ask === 'bulk' && error.kind !== 'bad-request') break;
  }
  const { findings, settings, unknown } = discovered(evidence, { ...fields, known: mirror.known });
  return {
    findings: [
      ...letThrough(answers),
      ...skew(answers),
      ...catalog(evidence, config, now()),
      ...findings,
      ...stopped,
    ],
    requests: answers.map(({ route, error }) => ({ route, outcome: error?.kind ?? 'ok' })),
    settings,
    unknown: [...unknown, ...unasked],
  };
}

/** Returns findings about errors that no evidence covers. */
function otherError(error: PartnerError): CheckResult[] {
  if (error.kind === 'bad-request' || error.kind === 'snapshot-expired' || error.kind === 'delta-too-large')
    return [];
  if (error.kind === 'snapshot-stale') return [warn(error.route, error.message, error.hint)];
  return [fail(error.route, error.message, error.hint)];
}

async function send(
  rawClient: RawClient,
  question: Exclude<Question, { ask: 'nothing' | 'sample' }>,
  permit: Parameters<RawClient['manifest']>[0],
): Promise<RawAnswer> {
  if (question.ask === 'manifest') return await rawClient.manifest(permit);
  return question.ask === 'bulk'
    ? await rawClient.bulk(permit, question.body)
    : await rawClient.delta(permit, question.since);
}

function noted(
  evidence: Evidence,
  question: Question,
  { error, body }: RawAnswer,
  known: KnownNames,
): Evidence {
  const kind = error?.kind ?? 'ok';
  switch (question.ask) {
    case 'manifest':
      return {
        ...evidence,
        manifest: {
          kind,
          body,
          candidates: manifestCandidates(error === null ? body : null, known.manifest),
        },
      };
    case 'bulk':
      return { ...evidence, bulk: [...evidence.bulk, { sent: question.body, kind, body }] };
    case 'delta':
      return { ...evidence, delta: [...evidence.delta, { path: question.path, kind, body }] };
    default:
      return evidence;
  }
}

/** Takes SKUs from the beginning of the first readable file, else the mirror. Sends no request with the api_key. */
async function takeSample(config: Config, evidence: Evidence, mirror: OwnMirror): Promise<SkuSample> {
  const configured = config.partner.fields.manifestUrl;
  const urls = (evidence.manifest?.candidates.url ?? []).toSorted(
    (a, b) => Number(b.path === configured) - Number(a.path === configured),
  );
  let problem: SkuSample['problem'] = null;
  for (const { path, value } of urls.slice(0, 3)) {
    try {
      return { ...(await beginningOf(config, value)), urlPath: path, problem: null };
    } catch (error) {
      problem ??= error instanceof PartnerError ? error : new PartnerError('file-fault', 'manifest-file');
    }
  }
  return { ...mirror.skus, urlPath: null, problem };
}

async function beginningOf(
  { partner }: Config,
  url: Evidence['manifest'] extends null
    ? never
    : NonNullable<Evidence['manifest']>['candidates']['url'][number]['value'],
): Promise<Pick<SkuSample, 'snapshot' | 'live'>> {
  const stop = new AbortController();
  const found = { snapshot: [] as string[], live: [] as string[] };
  try {
    const batches = readManifestFile({
      url,
      baseUrl: new URL(partner.baseUrl),
      origins: partner.filesOrigins,
      timeoutMs: partner.timeoutMs,
      proxy: partner.proxy,
      signal: stop.signal,
      batchSize: FILE_LINES,
    });
    for await (const { lines, rejected } of batches) {
      if (lines.length === 0 && rejected.length > 0)
        throw new PartnerError('file-corrupt', 'manifest-file', {
          detail: `its first ${rejected.length} lines cannot be parsed`,
        });
      for (const { sku, priceSource } of lines) found[priceSource].push(sku);
      break;
    }
    return found;
  } finally {
    stop.abort();
  }
}

function letThrough(answers: readonly RawAnswer[]): CheckResult[] {
  const through = answers.find(({ error }) => letsThrough(error?.kind ?? 'ok'));
  return through === undefined || answers.some(({ error }) => error !== null && refuses(error.kind))
    ? []
    : [ok('credential', `accepted by the ${through.route} route`)];
}

function skew(answers: readonly RawAnswer[]): CheckResult[] {
  const dated = answers.find(({ date }) => date !== null);
  if (dated?.date === undefined || dated.date === null) return [];
  // The header counts whole seconds, so its middle is compared with the middle of the request.
  const theirs = dated.date.getTime() + 500;
  return [judgeSkew('clock', "the partner's Date header", theirs - (dated.sentAt + dated.receivedAt) / 2)];
}

function catalog({ manifest }: Evidence, config: Config, now: number): CheckResult[] {
  if (manifest?.kind !== 'ok') return [];
  const { url, snapshotId } = manifest.candidates;
  const reading = readManifestMeta(manifest.body, {
    urlField: url[0]?.path,
    snapshotIdField: snapshotId[0]?.path,
  });
  if (!reading.ok) return [];
  const { skuCount, livePricedSkuCount, generatedAt } = reading.value;
  const all = skuCount === null ? 'an unknown number of SKUs' : `${count(skuCount)} SKUs`;
  const live = livePricedSkuCount === null ? '' : `, ${count(livePricedSkuCount)} of them live`;
  if (generatedAt === null) return [ok('manifest', `${all}${live}, of unknown age`)];
  const ageMs = now - generatedAt.getTime();
  const text = `${all}${live}, generated ${generatedAt.toISOString()} (${formatAge(ageMs / 1000)} ago)`;
  return ageMs > config.catalog.staleAfterMs
    ? [
        warn(
          'manifest',
          text,
          'older than CATALOG_STALE_AFTER: prices are refreshed by age until the partner builds a newer one',
        ),
      ]
    : [ok('manifest', text)];
}

const at = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;
const seconds = (ms: number): string => formatAge(Math.ceil(ms / 1000));

/** Returns what to do about a refusal, by its suspected cause. */
function remedy({ suspected, backoffLeftMs }: Refused, now: number): string {
  const again = backoffLeftMs > 0 ? `run doctor again after ${at(now + backoffLeftMs)}` : 'run doctor again';
  switch (suspected) {
    case 'account':
      return `ask the partner to complete the supplier account; then ${again}`;
    case 'rate':
      return `nothing yet: ${again}; if it happens again, lower PARTNER_RATE_SHARE`;
    default:
      return `check PARTNER_API_KEY, PARTNER_SECRET and the other services that use the account; then ${again}`;
  }
}

/**
 * Returns the line for a refused request of this run: what the partner said, how long requests pause, what to do. `now`
 * in epoch milliseconds.
 */
function refusal(error: PartnerError, refused: Refused | null, now: number): CheckResult {
  if (error.kind === 'account-not-configured') return fail('credential', error.message, error.hint);
  const backoff =
    refused !== null && refused.backoffLeftMs > 0
      ? `; requests are paused for ${seconds(refused.backoffLeftMs)}`
      : '';
  const text = `${error.message}${refused === null ? '' : `: ${refused.explained}`}${backoff}`;
  return fail('credential', text, refused === null ? error.hint : remedy(refused, now));
}

/** Returns the line for a request that may not be sent for another `forMs`; `because` is the pacer's reason to wait. */
function putOff(because: PutOff, forMs: number, refused: Refused | null, now: number): CheckResult {
  if (because === 'paused')
    return warn(
      'partner',
      'not checked: requests to the partner are paused by request (`catalog-mirror status` says who)',
      'run `catalog-mirror resume`, then doctor again',
    );
  if (because === 'probe')
    return warn(
      'credential',
      'not checked: a daemon is testing whether the partner accepts requests again',
      'run doctor again in a minute',
    );
  if (refused !== null)
    return fail(
      'credential',
      `not checked: requests are paused for another ${seconds(forMs)}; ${refused.explained}`,
      remedy({ ...refused, backoffLeftMs: forMs }, now),
    );
  return warn(
    'partner',
    `not checked: the mirror's share of the rate limit is used up for ${seconds(forMs)}`,
    `run doctor again after ${at(now + forMs)}`,
  );
}
