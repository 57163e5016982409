import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { bulkAnswerOf, type PartnerClient, type Permit } from '../../src/partner/client.ts';
import { readDelta } from '../../src/partner/delta-answer.ts';
import { classifyAnswer, codeOf, PartnerError, type Route } from '../../src/partner/errors.ts';
import { readManifestMeta } from '../../src/partner/manifest-answer.ts';
import { Ambiguities } from '../../src/sandbox/ambiguities.ts';
import { answerBulk, answerDelta, answerManifest, type CatalogContext } from '../../src/sandbox/catalog.ts';
import { Presigner, Signatures, snapshotOf } from '../../src/sandbox/files.ts';
import { LiveLimiter } from '../../src/sandbox/gate.ts';
import { resolveOptions, type SandboxOptions, type Settings } from '../../src/sandbox/options.ts';
import { createRng } from '../../src/sandbox/rng.ts';
import { manifestLine } from '../../src/sandbox/wire.ts';
import { World } from '../../src/sandbox/world.ts';
import { spellIn } from './spells.ts';
import type { Worker } from './worker.ts';

/** An answer on its way: a status and a body, or how the connection failed. */
export type Raw =
  | { readonly status: number; readonly body: unknown }
  | { readonly failed: 'timeout' | 'network' | 'unreadable' };

/**
 * One request of a worker: asked, then answered by the partner, then delivered. Anything else may happen in
 * between.
 */
export interface Pending {
  readonly worker: Worker;
  readonly route: Route;
  /** SKUs of a bulk call. */
  readonly skus: readonly string[];
  /** The token of a delta request. */
  readonly since: string | null;
  answer: Raw | null;
  answeredAt: number;
  /** Whether the answer takes its time to arrive. */
  slow: boolean;
  /** Returns the partner's own answer at this moment. */
  readonly compute: () => Raw;
  readonly deliver: (raw: Raw) => Promise<void>;
}

interface Cached {
  readonly raw: Raw;
  readonly at: number;
}

/** How long a cache may keep a delta (partner rules 8). */
const DELTA_CACHED_MS = 60_000;

type Of = Pick<Pending, 'skus' | 'since'>;

/** Replaces an answer. `since` is the token of a delta. */
export type Bend = (own: Raw, since: string | null) => Raw;

const NAMES = { priceFields: ['price'], skuField: 'sku' };

/**
 * The sandbox's answers without its server: workers ask, and the scheduler decides when and how they are answered.
 */
export class SimPartner {
  world: World;
  settings: Settings;
  pending: Pending[] = [];
  /** How it words its answers, which are plain until a history enables it. */
  ambiguities = new Ambiguities(createRng(0));
  /** What replaces its own answers for a while. */
  readonly bends = new Map<Route, Bend>();
  /** SKUs whose changes a delta has left out. */
  readonly omitted = new Set<string>();
  /** Called with what an answer says of a SKU that is no longer true. */
  saidLate: (sku: string, sizes: Record<string, number | null>) => void = () => undefined;
  fileIsEmpty = false;
  /** Answers of the delta route that a cache on the way holds, by `since`. Null without a cache. */
  deltaCache: Map<string, Cached> | null = null;
  /** When the partner itself last gave an answer. */
  saidAt = 0;
  /** Called with what an answer shows. */
  note: (what: string) => void = () => undefined;
  readonly #presigner = new Presigner(new Signatures('simulated'));
  readonly #server: Server;
  readonly #byName = new Map<string, Worker>();
  #ceiling = new LiveLimiter(null);
  base = '';

  constructor() {
    this.settings = resolveOptions({ skus: 0 });
    this.world = new World(this.settings);
    this.#server = createServer((request, response) => void this.#file(request.url ?? '', response));
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, '127.0.0.1', resolve);
    });
    this.base = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Starts a new world. `words` is the seed of how answers are worded, null for plain ones. */
  begin(options: SandboxOptions, words: number | null): void {
    this.settings = resolveOptions(options);
    this.world = new World(this.settings);
    this.#ceiling = new LiveLimiter(this.settings.liveCeilingPerMinute);
    this.pending = [];
    this.bends.clear();
    this.omitted.clear();
    this.fileIsEmpty = false;
    this.deltaCache = null;
    this.ambiguities = new Ambiguities(createRng(words ?? 0));
    this.ambiguities.enabled = false;
    // The partner knows what the mirror was filled from.
    const skus = [...this.world.truth().keys()];
    answerBulk(
      { ...this.#context(), settings: { ...this.settings, liveBudget: Infinity } },
      JSON.stringify({ skus }),
    );
    const id = this.world.newestSnapshot();
    Array.from(this.ambiguities.file(this.world.lines(id ?? '') ?? [], () => ''));
    this.ambiguities.enabled = words !== null;
  }

  /** Returns the partner's client for this worker. */
  clientOf(worker: Worker): PartnerClient {
    this.#byName.set(worker.name, worker);
    const ask = <T>(
      permit: Permit,
      route: Route,
      compute: () => Raw,
      read: Reader<T>,
      of: Partial<Of> = {},
    ) => settling(permit, async () => read(accepted(route, await this.#ask(worker, route, compute, of))));
    return {
      manifest: (permit) =>
        ask(
          permit,
          'manifest',
          () => answerManifest({ ...this.#context(), base: `${this.base}/${worker.name}` }),
          (body) => readable('manifest', readManifestMeta(body, {})),
        ),
      delta: (permit, since) =>
        ask(
          permit,
          'delta',
          () => this.#delta(since),
          (body) => readable('delta', readDelta(body, NAMES)),
          { since },
        ),
      bulk: (permit, skus) =>
        ask(
          permit,
          'bulk',
          () => answerBulk(this.#context(), JSON.stringify({ skus })),
          (body) => bulkAnswerOf(body, NAMES, skus.length),
          { skus: [...skus] },
        ),
      lowest: () => Promise.reject(new Error('no part of the mirror asks singly')),
      close: () => Promise.resolve(),
    };
  }

  #context(): CatalogContext {
    const { settings, world, ambiguities } = this;
    return {
      settings,
      world,
      ceiling: this.#ceiling,
      presigner: this.#presigner,
      ambiguities,
      base: this.base,
    };
  }

  #delta(since: string): Raw {
    const now = this.settings.now();
    const known = this.deltaCache?.get(since);
    if (known !== undefined && now - known.at < DELTA_CACHED_MS) {
      this.note('delta cached');
      this.saidAt = known.at;
      return known.raw;
    }
    const raw = answerDelta(this.#context(), since);
    if (raw.status === 200) this.deltaCache?.set(since, { raw, at: now });
    return raw;
  }

  /** Returns the answer as the partner gives it at present. */
  #present(route: Route, compute: () => Raw, since: string | null): Raw {
    this.saidAt = this.settings.now();
    const bend = this.bends.get(route);
    const raw = bend === undefined ? compute() : bend(compute(), since);
    const shown = bend === undefined ? spellIn(route, raw) : `${route} bent`;
    if (shown !== null) this.note(shown);
    return raw;
  }

  async #ask(
    worker: Worker,
    route: Route,
    own: () => Raw,
    { skus = [], since = null }: Partial<Of> = {},
  ): Promise<Raw> {
    const compute = () => this.#present(route, own, since);
    let mine: Pending | undefined;
    try {
      return await worker.answer<Raw>((deliver) => {
        mine = { worker, route, skus, since, answer: null, answeredAt: 0, slow: false, compute, deliver };
        this.pending.push(mine);
      });
    } finally {
      this.pending = this.pending.filter((pending) => pending !== mine);
    }
  }

  async #file(path: string, response: ServerResponse): Promise<void> {
    const url = new URL(path, this.base);
    const [, name = '', ...rest] = url.pathname.split('/');
    const own = `/${rest.join('/')}`;
    const worker = this.#byName.get(name);
    if (worker === undefined) return void response.destroy();
    const compute = (): Raw => {
      const { settings, world } = this;
      if (this.#presigner.check(own, url.searchParams, settings.now(), world.urlGeneration) !== null)
        return { status: 403, body: 'refused' };
      const lines = world.lines(snapshotOf(own) ?? '');
      if (lines === null) return { status: 404, body: 'freed' };
      const texts = this.ambiguities.file(lines, (line) => manifestLine(settings.dialect, line));
      const text = this.fileIsEmpty ? '' : [...texts].join('');
      return { status: 200, body: gzipSync(text, { level: 1 }) };
    };
    try {
      const raw = await this.#ask(worker, 'manifest-file', compute);
      if ('failed' in raw) return void response.destroy();
      response.writeHead(raw.status, { connection: 'close' }).end(raw.body);
    } catch {
      response.destroy();
    }
  }
}

type Reader<T> = (body: unknown) => T;

async function settling<T>(permit: Permit, work: () => Promise<T>): Promise<T> {
  let value: T;
  try {
    value = await work();
  } catch (error) {
    if (error instanceof PartnerError) await permit.settle(error.kind);
    throw error;
  }
  await permit.settle('ok');
  return value;
}

/** Returns the body of a successful answer, as JSON delivers it. */
function accepted(route: Route, raw: Raw): unknown {
  if ('failed' in raw) throw new PartnerError(raw.failed, route);
  const body: unknown = JSON.parse(JSON.stringify(raw.body));
  const kind = classifyAnswer(route, raw.status, body);
  if (kind === null) return body;
  const code = codeOf(body);
  throw new PartnerError(
    kind,
    route,
    code === undefined ? { status: raw.status } : { status: raw.status, code },
  );
}

function readable<T>(route: Route, reading: { ok: true; value: T } | { ok: false; problem: string }): T {
  if (reading.ok) return reading.value;
  throw new PartnerError('unreadable', route, { status: 200, detail: reading.problem });
}
