import type { OwnSku } from './own-skus.ts';

/** How undocumented parts of bodies look (partner rules 2.4.open, 2.5.open, 2.7.open, 2.8.open, 4.1.open). */
export interface Dialect {
  bulkBodyKey: string;
  /** Name of the manifest response's presigned URL. */
  urlField: string;
  /** Name of the manifest response's snapshot identifier. */
  snapshotIdField: string;
  /** Elements of `not_found`, `deferred` and `errors`: the SKU itself, or an object that contains it. */
  elements: 'string' | 'object';
  skuField: string;
  entries: 'number' | 'string' | 'object';
  priceField: string;
  /** If entries are objects: a member before the price, with the shops' price; null if none. */
  retailField: string | null;
  /** An additional member of the manifest response with an identifier other than the snapshot's; null if none. */
  otherIdField: string | null;
  /** Type of `requested` and `deduped`. */
  counts: 'number' | 'string';
  /** Elements of `changed`, `removed` and `now_live`. */
  changedElements: 'string' | 'object';
  /** Adds members that the partner does not document wherever a body may grow. */
  extraFields: boolean;
  /** Gzip of the manifest file: as the object's content, as Content-Encoding, or one inside the other. */
  gzipFile: 'content' | 'encoding' | 'both';
}

/** Node.js's timers fire at once beyond 2^31 - 1 ms, so every timer stays below. */
export const LONGEST_TIMER_MS = 24 * 86_400_000;
/** Longest time that only the sandbox's clock waits for. */
export const LONGEST_MS = 366 * 86_400_000;

/** Options with which a sandbox can be started. Shares are parts of 1, `…Ms` are milliseconds. */
export interface SandboxOptions {
  host?: string;
  port?: number;
  /** Where clients reach it; null means by each request's Host header. */
  publicUrl?: string | null;
  /** Opens the control routes to whoever sends it; null reserves them for this machine. */
  controlToken?: string | null;
  seed?: number;
  skus?: number;
  /** SKUs of the user's own, in addition to `skus`. */
  catalog?: readonly OwnSku[];
  /** Part of `skus` that is live-priced. */
  liveShare?: number;
  /** SKUs in addition to `skus` that the price routes know but no manifest lists (partner rule 4.2.3). */
  unlistedShare?: number;
  /** Part of `skus` that the manifest lists but the price routes answer with 0009 (partner rule 4.2.3). */
  ghostShare?: number;
  /** Part of `skus` that the manifest lists as `snapshot` but that takes live budget when priced. */
  mislistedShare?: number;
  /** Part of `skus` that make a bulk call answer 400 as a whole (partner rule 7.1.400). */
  refusedShare?: number;
  /** Most SKUs in a bulk call. More get 504, as from a gateway (partner rule 8.open). */
  bulkLimit?: number;
  apiKey?: string;
  secret?: string;
  accountConfigured?: boolean;
  /** Requests let through in any rolling window (partner rule 8.rate). */
  rateLimit?: number;
  rateWindowMs?: number;
  /** Live computations in one bulk call (partner rule 4.1.3). */
  liveBudget?: number;
  /** Live computations in a rolling minute over all calls; null = no ceiling. */
  liveCeilingPerMinute?: number | null;
  urlTtlMs?: number;
  snapshotRetention?: number;
  /** Largest change set of one hop; a larger next hop answers 0013. Null for any size. */
  deltaMaxChanges?: number | null;
  /** Snapshots that one delta answer may advance. */
  deltaHops?: number;
  /** No-op SKUs in `changed`, relative to the number of real changes. */
  noopShare?: number;
  /** 0: the market moves only by `world.step()`. */
  marketIntervalMs?: number;
  /** Moves of one step; by default 0.4 % of `skus`, at least 5. */
  marketMoves?: number;
  /** 0: snapshots are built only by `world.buildSnapshot()`. */
  snapshotIntervalMs?: number;
  /** Age from which the newest snapshot answers 0014; null for never. */
  staleAfterMs?: number | null;
  initialSnapshot?: boolean;
  /** Part of the moves of live SKUs that the source of hints reports. */
  hintRecall?: number;
  /** Part of its reports that is true; above 0. */
  hintPrecision?: number;
  orders?: number;
  listings?: number;
  /** Initial orders that belong to another supplier, and as many listings. */
  foreignOrders?: number;
  vacation?: boolean;
  sellerShipping?: boolean;
  /** Time from a confirmation to the move that it starts. */
  confirmDelayMs?: number;
  /** Time after which an unconfirmed order fails; null if it waits. */
  confirmDeadlineMs?: number | null;
  /** Orders move on without a confirmation, as if somebody else had confirmed them. */
  autoConfirm?: boolean;
  dialect?: Partial<Dialect>;
  /** Answers ambiguously (ambiguities.ts). */
  ambiguous?: boolean;
  latencyMs?: number;
  /** Wall clock in epoch milliseconds. */
  now?: () => number;
  /** Epoch milliseconds at which the clock stands until a control route moves it; null if it runs, by `now`. */
  startAt?: number | null;
  /** Takes a line for each request; null for no log. */
  log?: ((line: string) => void) | null;
}

export type Settings = Required<Omit<SandboxOptions, 'dialect'>> & { dialect: Dialect };

const DEFAULT_DIALECT: Dialect = {
  bulkBodyKey: 'skus',
  urlField: 'url',
  snapshotIdField: 'snapshot_id',
  elements: 'string',
  skuField: 'sku',
  entries: 'number',
  priceField: 'price',
  retailField: null,
  otherIdField: null,
  counts: 'number',
  changedElements: 'string',
  extraFields: false,
  gzipFile: 'content',
};

/** Options with which a sandbox cannot be started. */
class SandboxOptionsError extends Error {
  override readonly name = 'SandboxOptionsError';
  readonly kind = 'sandbox-options';
  /** One problem per line, beginning with the option's name. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/** Names the durations that are invalid or too long for a timer. A stopped clock needs none for its intervals. */
function problemsOf({ latencyMs, marketIntervalMs, snapshotIntervalMs, startAt }: Settings): string[] {
  const timers = { latencyMs, ...(startAt === null && { marketIntervalMs, snapshotIntervalMs }) };
  return Object.entries(timers)
    .filter(([, ms]) => !(ms >= 0 && ms <= LONGEST_TIMER_MS))
    .map(([name]) => `${name}: expected milliseconds from 0 to ${LONGEST_TIMER_MS}`);
}

/**
 * Fills in the defaults. An option given as undefined counts as not given.
 *
 * @throws SandboxOptionsError
 */
export function resolveOptions(options: SandboxOptions): Settings {
  const skus = options.skus ?? 5000;
  const defaults: Omit<Settings, 'dialect'> = {
    host: '127.0.0.1',
    port: 0,
    publicUrl: null,
    controlToken: null,
    seed: 1,
    skus,
    catalog: [],
    liveShare: 0.05,
    unlistedShare: 0.01,
    ghostShare: 0.002,
    mislistedShare: 0,
    refusedShare: 0,
    bulkLimit: Infinity,
    apiKey: 'sandbox-key',
    secret: 'sandbox-secret',
    accountConfigured: true,
    rateLimit: 200,
    rateWindowMs: 60_000,
    liveBudget: 5,
    liveCeilingPerMinute: null,
    urlTtlMs: 3_600_000,
    snapshotRetention: 28,
    deltaMaxChanges: null,
    deltaHops: Infinity,
    noopShare: 0.02,
    marketIntervalMs: 0,
    marketMoves: Math.max(5, Math.floor((skus + (options.catalog?.length ?? 0)) * 0.004)),
    snapshotIntervalMs: 0,
    staleAfterMs: null,
    initialSnapshot: true,
    hintRecall: 0.5,
    hintPrecision: 0.5,
    orders: 250,
    listings: 600,
    foreignOrders: 20,
    vacation: false,
    sellerShipping: true,
    confirmDelayMs: 5000,
    confirmDeadlineMs: null,
    autoConfirm: false,
    ambiguous: false,
    latencyMs: 0,
    now: Date.now,
    startAt: null,
    log: null,
  };
  const settings = {
    ...defaults,
    ...given(options),
    dialect: { ...DEFAULT_DIALECT, ...given(options.dialect ?? {}) },
  };
  const problems = problemsOf(settings);
  if (problems.length > 0) throw new SandboxOptionsError(problems);
  return settings;
}

function given<T extends object>(options: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}
