import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { parameterProblem } from '../lib/connection-url.ts';
import { connectionOf } from '../lib/tls.ts';
import { isLoopbackUrl } from '../partner/origin.ts';
import { trustAlso } from './authorities.ts';
import { combined } from './combinations.ts';
import {
  addedByFiles,
  type ConfigProblem,
  type Environment,
  given,
  readEnvFiles,
  type ReadFile,
  spelling,
  unknownNames,
} from './environment.ts';
import type { Setting } from './rules.ts';
import { headerSecrets, type KeptSecret, readSecret, type SecretSource, urlSecrets } from './secrets.ts';
import { SETTINGS } from './settings.ts';

type Table = typeof SETTINGS;
type Name = keyof Table;
type ValueOf<S extends Setting> =
  | (S extends { secret: true } ? SecretSource : z.output<S['rule']>)
  | (S extends { unset: string } ? null : never);

/** Values grouped by path: `{ 'a.b': V }` becomes `{ a: { b: V } }`. */
type Nested<Values> = {
  readonly [G in Head<keyof Values & string>]: G extends keyof Values ? Values[G] : Nested<Within<Values, G>>;
};
type Head<Path extends string> = Path extends `${infer Group}.${string}` ? Group : Path;
type Within<Values, Group extends string> = {
  [Path in keyof Values as Path extends `${Group}.${infer Rest}` ? Rest : never]: Values[Path];
};
type Settings = Nested<{ [N in Name as Table[N]['path']]: ValueOf<Table[N]> }>;

/** The whole configuration, as declared in the table of settings: durations in milliseconds, shares in (0, 1]. */
export interface Config extends Settings {
  /** Settings that are valid but look like mistakes, for the operator. Never contains a secret value. */
  readonly warnings: readonly string[];
  /** Every value, present and past, that must not reach a log line. */
  readonly secrets: () => readonly string[];
}

/** The configuration of a command that works on the mirror without calling the partner. */
export type MirrorConfig = Omit<Config, 'partner' | 'access' | 'traces' | 'webhook'>;

/** The configuration of a command that posts changes of the mirror to others. */
export type WebhookConfig = Omit<Config, 'partner' | 'access' | 'traces'> & {
  readonly partner: Pick<Config['partner'], 'proxy'>;
};

export type HttpConfig = Pick<Config, 'http' | 'log' | 'warnings' | 'secrets'>;

/**
 * All problems of the environment at once. The message has one line per problem, then one per warning, mostly names
 * that were probably meant to be variables. It contains no secret.
 */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly kind = 'config';
  readonly problems: readonly ConfigProblem[];
  /** As in `Config`. */
  readonly warnings: readonly string[];
  readonly hint: string;

  constructor(problems: readonly ConfigProblem[], warnings: readonly string[] = []) {
    super(['invalid configuration', ...problems.map(problemLine), ...warnings].join('\n'));
    this.problems = problems;
    this.warnings = warnings;
    const names = problems.map(({ variable }) => variable).join(', ');
    const withoutAccount = problems.some(({ variable, unset }) => unset && ACCOUNT.test(variable));
    this.hint = withoutAccount
      ? `set ${names} in the environment; without an account of the partner, try \`catalog-mirror demo\``
      : `correct ${names}`;
  }
}

const ACCOUNT = /^PARTNER_(?:BASE_URL|API_KEY|SECRET)$/;

function problemLine({ variable, expected, unset, got, but }: ConfigProblem): string {
  const shown =
    got === undefined ? '' : `, got ${JSON.stringify(got.length > 100 ? `${got.slice(0, 100)}…` : got)}`;
  return `${variable}: ${unset === true ? 'not set; ' : ''}expected ${expected}${shown}${but === undefined ? '' : `; ${but}`}`;
}

const ROWS: readonly (readonly [name: Name, setting: Setting])[] = Object.entries(SETTINGS) as [
  Name,
  Setting,
][];

/** The settings, for generated documentation. `default` null: required. `secret`: may be given as `NAME_FILE`. */
export const VARIABLES: readonly {
  readonly name: string;
  readonly default: string | null;
  readonly meaning: string;
  readonly secret: boolean;
}[] = ROWS.map(([name, setting]) => ({
  name,
  default: setting.default ?? setting.unset ?? null,
  meaning: setting.meaning,
  secret: setting.secret === true,
}));

/** The process's environment and files, which `loadConfig` gets outside of tests. */
export const processSources: { readonly env: Environment; readonly readFile: ReadFile } = {
  env: process.env,
  readFile: (path) => readFileSync(path, 'utf8'),
};

/** Paths of environment files, by the variable that they set. */
const envFiles = new Map<string, string>();

/** Returns the file of `--env-file` that a variable comes from, or null. */
export const envFileOf = (variable: string): string | null => envFiles.get(variable) ?? null;

/**
 * Adds the variables of these files to the process's environment, whose own variables take precedence, and trusts the
 * certificate authorities that the files name for Node.js. Returns what is wrong with the files.
 */
export function useEnvFiles(paths: readonly string[]): string[] {
  const { env, readFile } = processSources;
  const { files, problems } = readEnvFiles(paths, readFile);
  const secrets = VARIABLES.filter(({ secret }) => secret).map(({ name }) => name);
  const added = addedByFiles(env, files, secrets);
  for (const [name, { value, path }] of added) {
    process.env[name] = value;
    envFiles.set(name, path);
  }
  const untrusted = trustAlso((name) => added.get(name)?.value ?? '', readFile);
  if (untrusted === null) return problems;
  const { variable, expected } = untrusted;
  return [...problems, `${envFileOf(variable)}: ${variable}: expected ${expected}`];
}

/** Which commands need a setting, by the beginning of its path. Others are needed by all that use the mirror. */
const NEEDS: Readonly<Record<string, Need>> = {
  'partner.proxy': 'webhook',
  partner: 'all',
  access: 'all',
  traces: 'all',
  webhook: 'webhook',
  http: 'http',
  log: 'http',
};
const WIDER = {
  all: ['all', 'webhook', 'database', 'http'],
  webhook: ['webhook', 'database', 'http'],
  database: ['database', 'http'],
  http: ['http'],
} as const;
type Need = keyof typeof WIDER;

function rowsFor(need: Need): typeof ROWS {
  const needed: readonly Need[] = WIDER[need];
  return ROWS.filter(([, { path }]) => {
    const [group = '', name = ''] = path.split('.');
    return needed.includes(NEEDS[`${group}.${name}`] ?? NEEDS[group] ?? 'database');
  });
}

/** Reads the † variables among the rows. Returns the problems by name, and the readable secrets. */
function readSecrets(rows: typeof ROWS, env: Environment, readFile: ReadFile) {
  const problems: [Name, ConfigProblem][] = [];
  const kept = new Map<Name, KeptSecret>();
  for (const [name, { rule, secret, connection, unset }] of rows) {
    if (secret === undefined) continue;
    const read = readSecret(name, rule, env, readFile);
    if (read === null) {
      const expected = `${rule.description} (or a file in ${name}_FILE)`;
      if (unset === undefined) problems.push([name, { variable: name, expected, unset: true }]);
    } else if ('expected' in read) problems.push([name, read]);
    else {
      kept.set(name, read);
      const expected = connection === true ? connectionProblem(read, readFile) : null;
      if (expected !== null) problems.push([name, { variable: spelling(env, name), expected }]);
    }
  }
  return { problems, kept };
}

/** Returns what a connection URL should contain instead of an invalid TLS or other parameter; null: all are valid. */
function connectionProblem(secret: KeptSecret, readFile: ReadFile): string | null {
  try {
    connectionOf(secret.read(), readFile);
    return parameterProblem(secret.read());
  } catch (error) {
    return error instanceof Error ? error.message : 'a URL';
  }
}

/**
 * Returns the texts of the variables among the rows that are not secret: as given, else the default, else null if
 * `unset` says what applies.
 */
function readTexts(rows: typeof ROWS, env: Environment): Record<string, string | null | undefined> {
  const plain = rows.filter(([, { secret }]) => secret === undefined);
  return Object.fromEntries(
    plain.map(([name, setting]) => [
      name,
      given(env, name)?.trim() || (setting.default ?? (setting.unset === undefined ? undefined : null)),
    ]),
  );
}

/** Parses those variables. Returns their values by name, and the problems of each and of their combinations. */
function parse(rows: typeof ROWS, env: Environment) {
  const texts = readTexts(rows, env);
  const shape = Object.fromEntries(
    rows
      .filter(([name]) => Object.hasOwn(texts, name))
      .map(([name, { rule, unset }]) => [name, unset === undefined ? rule : rule.nullable()]),
  );
  const { success, data, error } = combined(
    shape,
    (name) => (given(env, name)?.trim() ?? '') !== '',
  ).safeParse(texts);
  if (success) return { values: data, problems: [] };
  const problems = error.issues.map((issue): [Name, ConfigProblem] => {
    const name = issue.path[0] as Name;
    const text = texts[name];
    const ofMany = issue.code === 'custom' && issue.params?.['of'] === 'many';
    return [
      name,
      {
        variable: name,
        expected: ofMany ? issue.message : (SETTINGS[name].rule.description ?? ''),
        ...(typeof text !== 'string' && { unset: true }),
        // A URL with an @ or a query often contains a credential, and `whsec_` begins a webhook secret.
        ...(typeof text === 'string' && !/[@?]|whsec_/.test(text) && { got: text }),
      },
    ];
  });
  return { values: {}, problems };
}

/** Returns whether traces are sent anywhere, by variables that other programs of a platform share. */
function sendsTraces(env: Environment): boolean {
  const has = (name: Name) => (given(env, name)?.trim() ?? '') !== '';
  const isOff =
    given(env, 'OTEL_SDK_DISABLED')?.trim().toLowerCase() === 'true' ||
    given(env, 'OTEL_TRACES_EXPORTER')?.trim() === 'none';
  return !isOff && (has('OTEL_EXPORTER_OTLP_ENDPOINT') || has('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'));
}

/** Removes invalid trace settings from the environment if no traces are sent, with a warning for each. */
function withoutUnused(rows: typeof ROWS, env: Environment, readFile: ReadFile) {
  const ofTraces = rows.filter(([, { path }]) => path.startsWith('traces.'));
  if (ofTraces.length === 0 || sendsTraces(env)) return { used: env, ignored: [] };
  const wrong = inOrder(readSecrets(ofTraces, env, readFile).problems, parse(ofTraces, env).problems);
  const names = new Set(wrong.map(({ variable }) => variable.replace(/_FILE$/, '')));
  const used = Object.entries(env).filter(([name]) => !names.has(name.replace(/_FILE$/, '')));
  const ignored = wrong.map(
    (problem) => `${problemLine(problem)}; it is ignored, because no traces are sent`,
  );
  return { used: Object.fromEntries(used), ignored };
}

/** Warns of base URLs that are valid but probably a mistake. */
function baseUrlWarnings(rows: typeof ROWS, env: Environment): string[] {
  const { PARTNER_BASE_URL: text, PARTNER_ALLOW_INSECURE: allowed } = readTexts(rows, env);
  const url = URL.parse(text ?? '');
  const isInClear = url?.protocol === 'http:' && !isLoopbackUrl(url) && allowed === 'true';
  const isDoubled = /\/partner\/*$/.test(url?.pathname ?? '');
  return [
    ...(isInClear ? ['PARTNER_ALLOW_INSECURE: the credential is sent in clear text'] : []),
    ...(isDoubled ? ['PARTNER_BASE_URL ends in /partner, which every route adds: leave it out'] : []),
  ];
}

/** Returns one problem per variable, in the order of the table. */
function inOrder(...found: (readonly [Name, ConfigProblem][])[]): ConfigProblem[] {
  const all = found.flat();
  return ROWS.flatMap(([name]) => all.find(([of]) => of === name)?.[1] ?? []);
}

const namesOf = (rows: typeof ROWS) => rows.map(([name]) => name);
/** Variables that are connection URLs, those that contain headers, and all that are not connection URLs. */
const CONNECTIONS = namesOf(ROWS.filter(([, { connection }]) => connection === true));
const HEADERS = namesOf(ROWS.filter(([name, { secret }]) => secret === true && name.endsWith('_HEADERS')));
const OTHERS = namesOf(ROWS.filter(([, { connection }]) => connection !== true));

/** Returns what must not be logged: every secret so far, the pair that Basic encodes, and the passwords inside URLs. */
function unloggable(kept: ReadonlyMap<Name, KeptSecret>): readonly string[] {
  const seen = (name: Name) => [...(kept.get(name)?.seen ?? [])];
  const secrets = seen('PARTNER_SECRET');
  const pairs = seen('PARTNER_API_KEY').flatMap((key) => secrets.map((secret) => `${key}:${secret}`));
  const headers = HEADERS.flatMap(seen).flatMap(headerSecrets);
  const urls = CONNECTIONS.flatMap(seen).flatMap(urlSecrets);
  return [...new Set([...pairs, ...OTHERS.flatMap(seen), ...headers, ...urls])];
}

/** Returns every readable secret of the environment, even if the rest is invalid, to scrub error messages. */
export function secretsOf(env: Environment, readFile: ReadFile): readonly string[] {
  return unloggable(readSecrets(ROWS, env, readFile).kept);
}

function nested(values: readonly (readonly [path: string, value: unknown])[]): Record<string, unknown> {
  const config: Record<string, unknown> = {};
  for (const [path, value] of values) {
    const names = path.split('.');
    const last = names.pop() ?? '';
    let group = config;
    for (const name of names) group = (group[name] ??= {}) as Record<string, unknown>;
    group[last] = value;
  }
  return config;
}

/**
 * Turns the environment into the configuration of one command. Pure except for `readFile` (path → text), which is
 * called for `NAME_FILE` variables, now and again by `SecretSource.refresh`.
 *
 * `need` says what the command uses: `all` (the partner too), `webhook` (the mirror and receivers of its changes),
 * `database` (only the mirror) or `http` (only the health endpoint). Settings that it does not use are neither required
 * nor read, so `healthcheck` and `migrate` run without credentials.
 *
 * @throws ConfigError with every problem at once; it names variables and expectations, never a secret value.
 */
export function loadConfig(env: Environment, readFile: ReadFile, options?: { need?: 'all' }): Config;
export function loadConfig(env: Environment, readFile: ReadFile, options: { need: 'webhook' }): WebhookConfig;
export function loadConfig(env: Environment, readFile: ReadFile, options: { need: 'database' }): MirrorConfig;
export function loadConfig(env: Environment, readFile: ReadFile, options: { need: 'http' }): HttpConfig;
export function loadConfig(
  env: Environment,
  readFile: ReadFile,
  { need = 'all' }: { need?: Need } = {},
): Config | WebhookConfig | MirrorConfig | HttpConfig {
  const rows = rowsFor(need);
  const { used, ignored } = withoutUnused(rows, env, readFile);
  const secret = readSecrets(rows, used, readFile);
  const plain = parse(rows, used);
  const problems = inOrder(secret.problems, plain.problems);
  const warnings = [...unknownNames(env, VARIABLES), ...baseUrlWarnings(rows, env), ...ignored];
  if (problems.length > 0) throw new ConfigError(problems, warnings);

  const values: Readonly<Record<string, unknown>> = plain.values;
  const config = {
    ...nested(rows.map(([name, { path }]) => [path, kept(name)])),
    warnings,
    secrets: () => unloggable(secret.kept),
  };
  return config as unknown as Config;

  function kept(name: Name): unknown {
    return Object.hasOwn(values, name) ? values[name] : (secret.kept.get(name) ?? null);
  }
}
