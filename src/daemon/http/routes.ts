import type { Clock } from '../../lib/clock.ts';
import { type Answer, type HealthAnswer, healthAnswer, unavailable } from './answer.ts';

export type PageSource = () => Promise<{
  readonly type: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}>;

/** What the server answers from. */
export interface Sources {
  readonly metrics: () => Promise<string>;
  readonly live: () => HealthAnswer;
  readonly ready: () => Promise<HealthAnswer>;
  /** By path. */
  readonly pages?: ReadonlyMap<string, PageSource>;
}

/**
 * Who may read an answer: `everyone` all of it, or its `status` alone, or `known` only. Known is whoever asks by a
 * name of this server (and has its password, where there is one).
 */
export type Readers = 'everyone' | 'status' | 'known';

export interface HttpRoute {
  readonly readers: Readers;
  readonly answer: () => Promise<Answer>;
}

export const LONGEST_ANSWER_MS = 5000;
/** Between the starts of two readings for one route. */
const APART_MS = 100;
const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';

/**
 * The same work for all who ask while it runs, or is about to: slow scrapes do not pile up on Postgres, and many
 * quick ones take no more than a part of this process's time.
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

/** With its body as bytes: made once, however many get it. */
const encoded = (answer: Answer): Answer => ({ ...answer, body: Buffer.from(answer.body) });

/** What `work` resolves to, or `otherwise` when it takes longer than an answer may. */
async function inTime(clock: Clock, work: Promise<Answer>, otherwise: Answer): Promise<Answer> {
  const settled = new AbortController();
  try {
    return await Promise.race([work, clock.sleep(LONGEST_ANSWER_MS, settled.signal).then(() => otherwise)]);
  } finally {
    settled.abort();
  }
}

/** The routes by path. An answer that takes more than 5 s is a 503; one that fails rejects. */
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
