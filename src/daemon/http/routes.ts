import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../lib/clock.ts';
import { shownJson } from '../../lib/json.ts';

/** The daemon's health: `ok` decides between 200 and 503, and all members are the JSON body. */
export interface HealthAnswer {
  readonly ok: boolean;
  readonly [detail: string]: unknown;
}

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

export const json = (status: number, body: object, headers: Answer['headers'] = {}): Answer => ({
  status,
  type: 'application/json; charset=utf-8',
  body: `${shownJson(body)}\n`,
  headers,
});

export const unavailable = (reason: string): Answer => json(503, { ok: false, reason });
const healthAnswer = (health: HealthAnswer): Answer => json(health.ok ? 200 : 503, health);
/** Removes the reasons from an answer, for readers who may not see them. */
export const brief = ({ status }: Answer): Answer => json(status, { ok: status === 200 });

/** Lets a browser show an answer by itself, and nothing else. A page has its own policy. */
const FOR_BROWSERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** Sends the whole answer, or only its headers for HEAD. */
export function send(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  // A request body is not read, so its connection cannot be used again.
  const hasBody =
    request.headers['transfer-encoding'] !== undefined || (request.headers['content-length'] ?? '0') !== '0';
  response.writeHead(answer.status, {
    'content-type': answer.type,
    'content-length': Buffer.byteLength(answer.body),
    ...FOR_BROWSERS,
    ...(hasBody && { connection: 'close' }),
    ...(answer.headers as Record<string, string | string[]> | undefined),
  });
  response.end(answer.body);
}

export type PageSource = () => Promise<{
  readonly type: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}>;

/** Where the server gets its answers from. */
export interface Sources {
  readonly metrics: () => Promise<string>;
  readonly live: () => HealthAnswer;
  readonly ready: () => Promise<HealthAnswer>;
  /** By path. */
  readonly pages?: ReadonlyMap<string, PageSource>;
}

/**
 * Who may read an answer. `everyone`: everyone may read all of it. `status`: everyone may read its status, known
 * readers all. `known`: only known readers. A reader is known if it uses a name of this server (and has its
 * password, if there is one).
 */
type Readers = 'everyone' | 'status' | 'known';

export interface HttpRoute {
  readonly readers: Readers;
  readonly answer: () => Promise<Answer>;
}

export const LONGEST_ANSWER_MS = 5000;
/** Between the starts of two readings for one route. */
const APART_MS = 100;
const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';

/**
 * Shares work among all who ask while it runs or is about to: slow scrapes do not pile up on Postgres, and many
 * quick ones take only a part of this process's time.
 */
function shared<T>(clock: Clock, work: () => Promise<T>): () => Promise<T> {
  let next: Promise<T> | null = null;
  let startedAt = -Infinity;
  const run = async () => {
    const early = startedAt + APART_MS - clock.monotonic();
    if (early > 0) await clock.sleep(early);
    startedAt = clock.monotonic();
    return await work();
  };
  return () => {
    next ??= run().finally(() => {
      next = null;
    });
    return next;
  };
}

/** Encodes the body as bytes once, however many receive it. */
const encoded = (answer: Answer): Answer => ({ ...answer, body: Buffer.from(answer.body) });

/** Resolves to the result of `work`, or to `otherwise` if that takes longer than an answer may. */
async function inTime(clock: Clock, work: Promise<Answer>, otherwise: Answer): Promise<Answer> {
  const settled = new AbortController();
  try {
    return await Promise.race([work, clock.sleep(LONGEST_ANSWER_MS, settled.signal).then(() => otherwise)]);
  } finally {
    settled.abort();
  }
}

/** Creates the routes by path. An answer that takes more than 5 s is a 503; one that fails rejects. */
export function createRoutes(sources: Sources, clock: Clock): ReadonlyMap<string, HttpRoute> {
  // The time limit is inside the shared promise: work that never ends does not block later requests.
  const timed = (work: () => Promise<Answer>, otherwise: string) =>
    shared(clock, async () => encoded(await inTime(clock, work(), unavailable(otherwise))));
  const check = async () => healthAnswer(await sources.ready());
  const scrape = async () => ({ status: 200, type: PROMETHEUS_TEXT, body: await sources.metrics() });
  const pages = [...(sources.pages ?? [])].map(([path, page]): [string, HttpRoute] => {
    const show = async () => ({ status: 200, ...(await page()) });
    return [path, { readers: 'known', answer: timed(show, 'the page took too long') }];
  });
  return new Map<string, HttpRoute>([
    ...pages,
    ['/livez', { readers: 'everyone', answer: async () => healthAnswer(sources.live()) }],
    ['/readyz', { readers: 'status', answer: timed(check, 'the check took too long') }],
    ['/metrics', { readers: 'known', answer: timed(scrape, 'the scrape took too long') }],
  ]);
}
