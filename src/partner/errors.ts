/** The requests of the partner client: four API routes, and the manifest file at its presigned URL. */
export const ROUTES = ['manifest', 'delta', 'bulk', 'lowest', 'manifest-file'] as const;
export type Route = (typeof ROUTES)[number];

/** What went wrong, determined from status, body keys and `code`. Callers branch on this only. */
export type PartnerErrorKind =
  | 'throttled-or-forbidden'
  | 'account-not-configured'
  | 'unauthorised'
  | 'authorizer-fault'
  | 'service-fault'
  | 'snapshot-expired' // code 0010
  | 'since-missing' // code 0011
  | 'no-snapshot' // code 0012
  | 'delta-too-large' // code 0013
  | 'snapshot-stale' // code 0014
  | 'sku-not-found' // code 0009
  | 'bad-request'
  | 'no-skus-read' // a bulk answer with `requested: 0`
  | 'cached-answer' // from another time, or for another request
  | 'not-a-route'
  | 'unreadable'
  | 'answer-too-large'
  | 'network'
  | 'timeout'
  | 'aborted'
  | 'url-refused'
  | 'url-expired'
  | 'file-fault'
  | 'file-corrupt'
  | 'file-too-large';

/** How a request ended. */
export type RequestOutcome = 'ok' | PartnerErrorKind;

/**
 * The kinds by which a wrong credential and throttling cannot be told apart (partner rules 5.6 and 5.7). They make
 * all replicas back off, and a credential file is read again after them.
 */
export const AUTH_CLASS: ReadonlySet<PartnerErrorKind> = new Set<PartnerErrorKind>([
  'throttled-or-forbidden',
  'unauthorised',
  'authorizer-fault',
]);

/** Kinds of requests that the partner may not have answered. They say nothing about rate or credential. */
export const NO_ANSWER: ReadonlySet<PartnerErrorKind> = new Set<PartnerErrorKind>([
  'network',
  'timeout',
  'aborted',
]);

/**
 * Errors that a request of any route may meet while the partner, or the way to it, is down: no answer, a page or a
 * redirect instead of one, a gateway without the route, an empty stub. They do not include objections to the
 * request itself.
 */
export const OUTAGE_KINDS: readonly PartnerErrorKind[] = [
  'network',
  'timeout',
  'service-fault',
  'unreadable',
  'not-a-route',
  'no-skus-read',
];

const NO_BULK_BODY =
  'the request was rejected as invalid, by the partner or by what stands before it: check PARTNER_BASE_URL with `doctor`';

const HINTS: Record<PartnerErrorKind, string> = {
  'throttled-or-forbidden':
    'throttled or refused: the partner answers both alike; ' +
    'sending resumes after the back-off, and only a 403 that persists in quiet windows points to the credential',
  'account-not-configured': 'the credential is valid but the supplier account is incomplete: ask the partner',
  unauthorised: 'the Authorization header did not arrive: check for a proxy that strips it',
  'authorizer-fault':
    'unknown api_key or malformed header, or a fault of the authorizer: check PARTNER_API_KEY',
  'service-fault': 'an error on the partner side: the request is retried',
  'snapshot-expired': 'the delta chain is broken: a new manifest is fetched',
  'since-missing': 'the stored snapshot id is empty: a new manifest is fetched',
  'no-snapshot': 'the partner has not built a snapshot yet; the price routes still answer',
  'delta-too-large': 'the next change set is too large for the delta: a new manifest is fetched',
  'snapshot-stale': "the partner's snapshot builder has stopped; the price routes still answer",
  'sku-not-found': 'the price routes do not know this SKU',
  'bad-request': 'the partner rejected the request as invalid: check PARTNER_BULK_BODY_KEY with `doctor`',
  'no-skus-read':
    'the partner read no SKU of the bulk call: set PARTNER_BULK_BODY_KEY to the name that `doctor` finds',
  'cached-answer':
    'a cache between here and the partner has sent what it had kept: have it keep nothing of the catalog routes and of bulk answers',
  'not-a-route': 'there is no such route: check PARTNER_BASE_URL',
  unreadable: 'the answer does not have the documented shape: `doctor` names the field',
  'answer-too-large':
    'the answer exceeds a limit on bytes, values or nesting: bulk calls get smaller, and in place of a delta a new manifest is fetched',
  network: 'the connection failed: check PARTNER_BASE_URL, DNS, TLS and the network',
  timeout: 'no complete answer in time: see PARTNER_TIMEOUT and PARTNER_DOWNLOAD_TIMEOUT',
  aborted: 'cancelled by this process',
  'url-refused':
    'the manifest file must be at https on a public host (or on loopback where PARTNER_BASE_URL is), or at one of PARTNER_FILES_ORIGINS',
  'url-expired': 'the presigned URL has expired: a new one is requested',
  'file-fault': 'the files origin did not deliver the manifest file',
  'file-corrupt': 'the manifest file is truncated or damaged: it is downloaded again',
  'file-too-large': 'the manifest file exceeds a limit on bytes or lines',
};

/**
 * Facts of a failed request. `detail` contains only our own wording, the partner's field names or a proxy's
 * address: never a value, a request's URL or a secret.
 */
export interface PartnerErrorFacts {
  status?: number;
  code?: string;
  hint?: string;
  detail?: string;
  cause?: Error;
}

/** A request to the partner without a usable answer. Contains neither the secret nor a presigned URL's query. */
export class PartnerError extends Error {
  readonly kind: PartnerErrorKind;
  readonly route: Route;
  readonly status: number | undefined;
  readonly code: string | undefined;
  readonly hint: string;

  constructor(kind: PartnerErrorKind, route: Route, facts: PartnerErrorFacts = {}) {
    const { status, code, detail } = facts;
    const marks = [
      status === undefined ? '' : `status ${status}`,
      code === undefined ? '' : `code ${code}`,
      detail ?? '',
    ];
    const tail = marks.filter((mark) => mark !== '').join(', ');
    super(
      `${route}: ${kind}${tail === '' ? '' : ` (${tail})`}`,
      facts.cause === undefined ? {} : { cause: facts.cause },
    );
    this.name = 'PartnerError';
    this.kind = kind;
    this.route = route;
    this.status = status;
    this.code = code;
    this.hint = facts.hint ?? hintFor(kind, route);
  }
}

const hintFor = (kind: PartnerErrorKind, route: Route): string =>
  kind === 'bad-request' && route !== 'bulk' ? NO_BULK_BODY : HINTS[kind];

/**
 * Returns whether a refusal may concern this request rather than all of the account's. A gateway may refuse a body
 * or a route in the same way as the authorizer refuses a request (partner rule 5.7). A 429 shows that the rate is
 * the cause.
 */
export function mayBeOfWhatIsAsked({ kind, status }: Pick<PartnerError, 'kind' | 'status'>): boolean {
  return (kind === 'throttled-or-forbidden' && status !== 429) || kind === 'authorizer-fault';
}

type Body = Readonly<Record<string, unknown>>;

function bodyOf(body: unknown): Body | null {
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? (body as Body) : null;
}

/** Returns the `code` of an answer's body as four digits, or undefined (partner rules 7.3). */
export function codeOf(body: unknown): string | undefined {
  const fields = bodyOf(body);
  if (fields === null || !Object.hasOwn(fields, 'code')) return undefined;
  const { code } = fields;
  if (typeof code === 'string' && /^\d{4}$/.test(code)) return code;
  return typeof code === 'number' && Number.isInteger(code) && code >= 0 && code <= 9999
    ? String(code).padStart(4, '0')
    : undefined;
}

/** Partner rules 7.3, 4.1 and 4.2: a code counts only with its status and on the routes that document it. */
const CODES: ReadonlyMap<string, { status: number; routes: readonly Route[]; kind: PartnerErrorKind }> =
  new Map([
    ['0009', { status: 400, routes: ['lowest'], kind: 'sku-not-found' }],
    ['0010', { status: 400, routes: ['delta'], kind: 'snapshot-expired' }],
    ['0011', { status: 400, routes: ['delta'], kind: 'since-missing' }],
    ['0012', { status: 503, routes: ['manifest', 'delta'], kind: 'no-snapshot' }],
    ['0013', { status: 400, routes: ['delta'], kind: 'delta-too-large' }],
    ['0014', { status: 503, routes: ['manifest', 'delta'], kind: 'snapshot-stale' }],
  ]);

const FILE_KINDS: readonly PartnerErrorKind[] = [
  'url-refused',
  'url-expired',
  'file-fault',
  'file-corrupt',
  'file-too-large',
];

/** Returns the kinds of error with which a request of this route can end. */
export function kindsOf(route: Route): PartnerErrorKind[] {
  if (route === 'manifest-file') return [...FILE_KINDS, ...NO_ANSWER];
  const elsewhere = new Set(FILE_KINDS);
  for (const { kind, routes } of CODES.values()) if (!routes.includes(route)) elsewhere.add(kind);
  if (route !== 'delta' && route !== 'bulk') elsewhere.add('cached-answer');
  return (Object.keys(HINTS) as PartnerErrorKind[]).filter((kind) => !elsewhere.has(kind));
}

const NOT_CONFIGURED = 'supplier account not configured';

/**
 * Only the documented text shows that an account is not configured (partner rule 5.5.not-configured), because any
 * gateway's 403 may contain a `statusCode` as well.
 */
function classifyForbidden(fields: Body | null): PartnerErrorKind {
  const message = fields?.['message'];
  const isDocumented =
    Number(fields?.['statusCode']) === 403 &&
    typeof message === 'string' &&
    message.trim().toLowerCase() === NOT_CONFIGURED;
  return isDocumented ? 'account-not-configured' : 'throttled-or-forbidden';
}

function classifyServerFault(fields: Body | null): PartnerErrorKind {
  // The authorizer's body is a bare {message}; the pricing routes' own faults may add a code or statusCode.
  const bare =
    fields !== null &&
    Object.hasOwn(fields, 'message') &&
    !['errorMessage', 'code', 'statusCode'].some((key) => Object.hasOwn(fields, key));
  return bare ? 'authorizer-fault' : 'service-fault';
}

/**
 * Classifies an answer by its route, HTTP status and body (partner rules 5.5, 7.1 to 7.3). `body` is parsed JSON,
 * or anything, such as null, if it was not JSON. Returns null for an answer worth reading, else the kind of the
 * error. Never throws.
 */
export function classifyAnswer(route: Route, status: number, body: unknown): PartnerErrorKind | null {
  if (route === 'manifest-file') return status === 200 ? null : status === 403 ? 'url-expired' : 'file-fault';
  const fields = bodyOf(body);
  const code = codeOf(body);
  if (status === 200) return code === undefined || code === '0000' ? null : 'unreadable';
  const known = code === undefined ? undefined : CODES.get(code);
  if (known !== undefined && known.status === status && known.routes.includes(route)) return known.kind;
  if (status === 401) return 'unauthorised';
  if (status === 403) return classifyForbidden(fields);
  if (status === 404) return 'not-a-route';
  // Like 429, it comes from a gateway, which has waited too long for the request or for the partner.
  if (status === 408) return 'timeout';
  // The service never sends it (partner rules 7.1), but a gateway in between that sends it means it.
  if (status === 429) return 'throttled-or-forbidden';
  if (status === 500) return classifyServerFault(fields);
  if (status > 500) return 'service-fault';
  return status >= 400 ? 'bad-request' : 'unreadable';
}

export const NOT_HTTP = 'HTTPParserError'; // the name of undici's error: it has no code
const TIMEOUT_CODES: ReadonlySet<string> = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ERR_PROXY_TIMEOUT',
  'ETIMEDOUT',
]);

/** Returns the `code` of a thrown error, or of its nearest cause that has one; undefined if there is none. */
export function failureCode(error: unknown): string | undefined {
  let current = error;
  for (let depth = 0; depth < 5 && current instanceof Error; depth += 1) {
    const { code, name } = current as Error & { code?: unknown };
    if (typeof code === 'string' && code !== 'ABORT_ERR') return code;
    if (name === NOT_HTTP) return NOT_HTTP;
    current = current.cause;
  }
  return undefined;
}

/**
 * Classifies an exception during a request: 'aborted', 'timeout' or 'network'. `timer` is the total timeout's
 * signal.
 */
export function classifyFailure(
  error: unknown,
  caller: AbortSignal | undefined,
  timer: AbortSignal,
): PartnerErrorKind {
  if (caller?.aborted) return 'aborted';
  if (timer.aborted) return 'timeout';
  return TIMEOUT_CODES.has(failureCode(error) ?? '') ? 'timeout' : 'network';
}

/**
 * Returns a copy of an exception that is safe to print: its name, code and scrubbed message, without its other
 * properties (ERR_INVALID_URL carries the URL as `input`, socket errors carry options). Removes `secrets` wherever
 * they occur.
 */
export function safeCause(error: unknown, secrets: readonly string[] = []): Error {
  const code = failureCode(error);
  if (!(error instanceof Error) || code === 'ERR_INVALID_URL' || code === 'ERR_INVALID_CHAR') {
    return new Error(code ?? 'unknown failure');
  }
  let text = error.message;
  for (const secret of secrets) if (secret.length > 0) text = text.replaceAll(secret, '[secret]');
  text = text.replaceAll(/\?[^\s"']*/g, '?[query]').replaceAll(/basic\s+[\w+/=-]+/gi, 'Basic [secret]');
  return new Error(`${error.name}${code === undefined ? '' : ` ${code}`}: ${text.slice(0, 300)}`);
}
