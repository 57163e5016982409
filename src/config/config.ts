import { readFileSync } from 'node:fs';
import { type ConfigProblem, type Environment, given, type ReadFile, unknownNames } from './environment.ts';
import type { PlainVariable, Scope, SecretVariable } from './rules.ts';
import { type KeptSecret, readSecret, type SecretSource, urlSecrets } from './secrets.ts';
import { TABLE } from './variables.ts';
import { connectionOf } from '../lib/tls.ts';
import { checkBaseUrl, isLoopbackUrl } from '../partner/origin.ts';

export type { SecretSource };

interface PartnerConfig {
  /** `{base_url}` without a trailing slash. */
  readonly baseUrl: string;
  /** Whether PARTNER_ALLOW_INSECURE lets http be used on hosts that are not loopback. */
  readonly allowInsecure: boolean;
  /** PARTNER_FILES_ORIGINS; null: what is public, or loopback where `baseUrl` is. */
  readonly filesOrigins: readonly string[] | null;
  readonly apiKey: SecretSource;
  readonly secret: SecretSource;
  readonly timeoutMs: number;
  readonly downloadTimeoutMs: number;
  /**
   * Names that the partner does not document (partner rules 2.4.open, 2.5.open, 2.7.open, 4.1.open). `manifestUrl` and
   * `snapshotId` are null while they are to be found by shape.
   */
  readonly fields: {
    readonly bulkBodyKey: string;
    readonly price: readonly string[];
    readonly sku: string;
    readonly manifestUrl: string | null;
    readonly snapshotId: string | null;
  };
}

/** What the health endpoint and the log need. */
export interface HttpConfig {
  readonly http: { readonly host: string; readonly port: number; readonly statusPage: boolean };
  readonly log: { readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent' };
  /** For the operator: what is valid but looks like a mistake. Never holds a secret value. */
  readonly warnings: readonly string[];
  /** Every value, present and past, that must not reach a log line. */
  readonly secrets: () => readonly string[];
}

/** What a command needs that works on the mirror without calling the partner. */
export interface MirrorConfig extends HttpConfig {
  /** `url` null: the embedded Postgres in `dataDir`. */
  readonly database: { readonly url: SecretSource | null; readonly dataDir: string };
  /** `redisUrl` null: the queues live in Postgres. */
  readonly queues: { readonly redisUrl: SecretSource | null; readonly prefix: string };
  readonly rate: {
    readonly limit: number;
    readonly windowMs: number;
    readonly share: number;
    readonly floor: number;
    readonly backoffMs: number;
  };
  readonly bulk: { readonly bulkMaxSkus: number; readonly liveBudget: number };
  readonly intervals: {
    readonly deltaMs: number;
    readonly manifestMs: number;
    readonly catalogCheckMs: number;
    readonly liveMs: number;
    readonly livePolicy: 'index' | 'round-robin';
    readonly deferredMs: number;
    readonly errorMs: number;
    readonly metadataMs: number;
    /** 0: no sweep of its own. */
    readonly sweepMs: number;
    readonly sweepMinAgeMs: number;
  };
  readonly catalog: { readonly staleAfterMs: number; readonly manifestMaxShrink: number };
  /** 0: for good. */
  readonly history: { readonly retentionMs: number };
}

/** The whole configuration: durations in milliseconds, shares in (0, 1]. */
export interface Config extends MirrorConfig {
  readonly partner: PartnerConfig;
}

/** Everything that is wrong with the environment, at once. Its message has one line a problem and holds no secret. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly kind = 'config';
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    const lines = problems.map(({ variable, expected, got, but }) => {
      const shown =
        got === undefined ? '' : `, got ${JSON.stringify(got.length > 100 ? `${got.slice(0, 100)}…` : got)}`;
      return `${variable}: expected ${expected}${shown}${but === undefined ? '' : `; ${but}`}`;
    });
    super(`invalid configuration\n${lines.join('\n')}`);
    this.problems = problems;
  }
}

type Name = keyof typeof TABLE;
type ValueOf<V> =
  V extends SecretVariable<false>
    ? SecretSource
    : V extends SecretVariable<true>
      ? SecretSource | null
      : V extends PlainVariable<infer T>
        ? T
        : never;
type Values = { readonly [K in Name]: ValueOf<(typeof TABLE)[K]> };
type Variable = PlainVariable<unknown> | SecretVariable<boolean>;

const NAMES = Object.keys(TABLE) as Name[];
const variable = (name: Name): Variable => TABLE[name];

/** The table of variables for generated documentation. `default` null: has to be given. `secret`: may be given as `NAME_FILE`. */
export const VARIABLES: readonly {
  readonly name: string;
  readonly default: string | null;
  readonly meaning: string;
  readonly expected: string;
  readonly secret: boolean;
}[] = NAMES.map((name) => {
  const { default: fallback, meaning, expected, secret } = variable(name);
  return { name, default: fallback, meaning, expected, secret };
});

/** The process's own environment and files: what `loadConfig` is given outside of tests. */
export const processSources: { readonly env: Environment; readonly readFile: ReadFile } = {
  env: process.env,
  readFile: (path) => readFileSync(path, 'utf8'),
};

const SCOPES = {
  all: ['partner', 'mirror', 'http'],
  database: ['mirror', 'http'],
  http: ['http'],
} as const satisfies Record<string, readonly Scope[]>;

function readPlain(
  name: Name,
  spec: PlainVariable<unknown>,
  env: Environment,
): { value: unknown } | ConfigProblem {
  const text = given(env, name)?.trim() || undefined;
  if (text === undefined) {
    return 'fallback' in spec ? { value: spec.fallback } : { variable: name, expected: spec.expected };
  }
  const value = spec.parse(text);
  if (value !== undefined) return { value };
  // A URL with an @ or a query often carries a credential.
  return { variable: name, expected: spec.expected, ...(/[@?]/.test(text) ? {} : { got: text }) };
}

/** Problems between variables. A variable that is itself wrong or out of scope is undefined here and takes no part. */
function combinationProblems(values: Partial<Values>, env: Environment): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const { PARTNER_BASE_URL: url, BULK_MAX_SKUS: max, BULK_LIVE_BUDGET: budget } = values;
  const { PARTNER_RATE_LIMIT: limit, PARTNER_RATE_SHARE: part } = values;
  if (url !== undefined && checkBaseUrl(new URL(url), values.PARTNER_ALLOW_INSECURE !== 'false') !== null) {
    // Only the scheme can be wrong here: the rest is the variable's own rule.
    const expected = 'an https:// URL (http only on a loopback host, or with PARTNER_ALLOW_INSECURE=true)';
    problems.push({ variable: 'PARTNER_BASE_URL', expected, got: url });
  }
  if (
    max !== undefined &&
    budget !== undefined &&
    budget > max &&
    given(env, 'BULK_LIVE_BUDGET') !== undefined
  ) {
    const expected = `at most BULK_MAX_SKUS (${max})`;
    problems.push({ variable: 'BULK_LIVE_BUDGET', expected, got: String(budget) });
  }
  if (limit !== undefined && part !== undefined && limit * part < 1) {
    const expected = `a share that leaves at least one of PARTNER_RATE_LIMIT (${limit}) requests a window`;
    problems.push({ variable: 'PARTNER_RATE_SHARE', expected, got: String(part) });
  }
  return problems;
}

/** What connection URLs ask of TLS and cannot have. */
function tlsProblem(name: Name, secret: KeptSecret, readFile: ReadFile): ConfigProblem | null {
  if (name !== 'DATABASE_URL' && name !== 'REDIS_URL') return null;
  try {
    connectionOf(secret.read(), readFile);
    return null;
  } catch (error) {
    return { variable: name, expected: error instanceof Error ? error.message : 'a URL' };
  }
}

/** Reads every variable of the scopes. Wrong ones are absent from `values`; each is among `problems`. */
function readAll(env: Environment, readFile: ReadFile, scopes: readonly Scope[]) {
  const problems: ConfigProblem[] = [];
  const values: Record<string, unknown> = {};
  const kept = new Map<Name, KeptSecret>();
  for (const name of NAMES) {
    const spec = variable(name);
    if (!scopes.includes(spec.scope)) continue;
    const read = spec.secret ? readSecret(name, spec, env, readFile) : readPlain(name, spec, env);
    if (read !== null && 'expected' in read) {
      problems.push(read);
    } else if (read !== null && 'seen' in read) {
      kept.set(name, read);
      values[name] = read;
      const problem = tlsProblem(name, read, readFile);
      if (problem !== null) problems.push(problem);
    } else {
      values[name] = read?.value ?? null;
    }
  }
  return { values: values as Partial<Values>, kept, problems };
}

function partnerConfig(v: Values): PartnerConfig {
  return {
    baseUrl: v.PARTNER_BASE_URL,
    allowInsecure: v.PARTNER_ALLOW_INSECURE === 'true',
    filesOrigins: v.PARTNER_FILES_ORIGINS,
    apiKey: v.PARTNER_API_KEY,
    secret: v.PARTNER_SECRET,
    timeoutMs: v.PARTNER_TIMEOUT,
    downloadTimeoutMs: v.PARTNER_DOWNLOAD_TIMEOUT,
    fields: {
      bulkBodyKey: v.PARTNER_BULK_BODY_KEY,
      price: v.PARTNER_PRICE_FIELDS,
      sku: v.PARTNER_SKU_FIELD,
      manifestUrl: v.PARTNER_MANIFEST_URL_FIELD,
      snapshotId: v.PARTNER_SNAPSHOT_ID_FIELD,
    },
  };
}

function mirrorConfig(v: Values): Omit<MirrorConfig, keyof HttpConfig> {
  return {
    database: { url: v.DATABASE_URL, dataDir: v.DATA_DIR },
    queues: { redisUrl: v.REDIS_URL, prefix: v.QUEUE_PREFIX },
    rate: {
      limit: v.PARTNER_RATE_LIMIT,
      windowMs: v.PARTNER_RATE_WINDOW,
      share: v.PARTNER_RATE_SHARE,
      floor: v.PARTNER_RATE_FLOOR,
      backoffMs: v.PARTNER_BACKOFF,
    },
    // The default budget gives way to a smaller BULK_MAX_SKUS; one that was asked for is a problem instead.
    bulk: { bulkMaxSkus: v.BULK_MAX_SKUS, liveBudget: Math.min(v.BULK_LIVE_BUDGET, v.BULK_MAX_SKUS) },
    intervals: {
      deltaMs: v.DELTA_INTERVAL,
      manifestMs: v.MANIFEST_INTERVAL,
      catalogCheckMs: v.CATALOG_CHECK_INTERVAL,
      liveMs: v.LIVE_INTERVAL,
      livePolicy: v.LIVE_POLICY,
      deferredMs: v.DEFERRED_INTERVAL,
      errorMs: v.ERROR_INTERVAL,
      metadataMs: v.METADATA_INTERVAL,
      sweepMs: v.SWEEP_INTERVAL,
      sweepMinAgeMs: v.SWEEP_MIN_AGE,
    },
    catalog: { staleAfterMs: v.CATALOG_STALE_AFTER, manifestMaxShrink: v.MANIFEST_MAX_SHRINK },
    history: { retentionMs: v.HISTORY_RETENTION },
  };
}

/** What must not be logged: each secret there has been, the pair as Basic encodes it, and the passwords inside URLs. */
function unloggable(kept: ReadonlyMap<Name, KeptSecret>): readonly string[] {
  const seen = (name: Name) => [...(kept.get(name)?.seen ?? [])];
  const keys = seen('PARTNER_API_KEY');
  const secrets = seen('PARTNER_SECRET');
  const pairs = keys.flatMap((key) => secrets.map((secret) => `${key}:${secret}`));
  const urls = [...seen('DATABASE_URL'), ...seen('REDIS_URL')].flatMap(urlSecrets);
  return [...new Set([...pairs, ...secrets, ...keys, ...urls])];
}

/** Every secret of the environment that can be read, whether or not the rest of it is right: for what is said of an error. */
export function secretsOf(env: Environment, readFile: ReadFile): readonly string[] {
  return unloggable(readAll(env, readFile, SCOPES.all).kept);
}

/**
 * Turns the environment into the configuration of one command. Pure but for `readFile` (path → text), which is called for
 * `NAME_FILE` variables, now and again by `SecretSource.refresh`.
 *
 * `need` says what the command uses: `all` (the partner too), `database` (the mirror alone) or `http` (the health endpoint
 * alone). What it does not use is neither required nor read, so `healthcheck` and `migrate` run without credentials.
 *
 * @throws ConfigError with every problem at once; it names variables and expectations, never a secret value.
 */
export function loadConfig(env: Environment, readFile: ReadFile, options?: { need?: 'all' }): Config;
export function loadConfig(env: Environment, readFile: ReadFile, options: { need: 'database' }): MirrorConfig;
export function loadConfig(env: Environment, readFile: ReadFile, options: { need: 'http' }): HttpConfig;
export function loadConfig(
  env: Environment,
  readFile: ReadFile,
  options: { need?: keyof typeof SCOPES } = {},
): Config | MirrorConfig | HttpConfig {
  const need = options.need ?? 'all';
  const { values, kept, problems } = readAll(env, readFile, SCOPES[need]);
  problems.push(...combinationProblems(values, env));
  if (problems.length > 0) throw new ConfigError(problems);

  const v = values as Values;
  const clearText = v.PARTNER_BASE_URL?.startsWith('http:') && !isLoopbackUrl(new URL(v.PARTNER_BASE_URL));
  const http: HttpConfig = {
    http: { host: v.HTTP_HOST, port: v.HTTP_PORT, statusPage: v.STATUS_PAGE === 'on' },
    log: { level: v.LOG_LEVEL },
    warnings: [
      ...unknownNames(env, VARIABLES),
      ...(clearText ? ['PARTNER_ALLOW_INSECURE: the credential is sent in clear text'] : []),
    ],
    secrets: () => unloggable(kept),
  };
  if (need === 'http') return http;
  const mirror: MirrorConfig = { ...http, ...mirrorConfig(v) };
  return need === 'database' ? mirror : { ...mirror, partner: partnerConfig(v) };
}
