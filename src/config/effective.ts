import { fittingLiveBudget } from './combinations.ts';
import { type Environment, given, type ReadFile } from './environment.ts';
import type { Setting } from './rules.ts';
import { readSecret } from './secrets.ts';
import { SETTINGS } from './settings.ts';

const SOURCES = ['default', 'environment', 'env-file', 'secret-file'] as const;

/** A setting in force, as shown to people. Contains no secret. */
export interface ShownSetting {
  readonly name: string;
  /** As a person would write it, with secrets masked; null if it is not set or cannot be shown. */
  readonly value: string | null;
  readonly source: (typeof SOURCES)[number];
  /** The file given by `--env-file`, or the file that contains the secret. */
  readonly file: string | null;
  /** What applies because it is not set; null if it is set or required. */
  readonly unset: string | null;
}

/** Shown in place of a secret, whatever its length. */
export const MASK = '********';

/**
 * Masks all credentials in the URLs of a text: passwords, logins without a password, and values of queries. A URL whose
 * credentials cannot be told apart is masked as a whole.
 */
export function maskUrls(text: string): string {
  return text
    .split(/,(?=\s*[a-z][a-z0-9+.-]*:\/\/)/i)
    .map(maskUrl)
    .join(',');
}

function maskUrl(text: string): string {
  // An @ after the host belongs to a login that was not encoded, so its end is unknown.
  if (/:\/\/[^\s/?#]*[/?#].*@/.test(text)) return MASK;
  return text
    .replaceAll(/(?<=:\/\/)[^\s/?#]*(?=@)/g, (login) =>
      login.includes(':') ? `${login.slice(0, login.indexOf(':'))}:${MASK}` : MASK,
    )
    .replaceAll(/([?&][^=&\s#]*=)[^&\s#]*/g, `$1${MASK}`);
}

/** Parameters of a connection URL that say how to connect and are never secret. */
const PLAIN_PARAMETERS =
  /^(?:sslmode|sslrootcert|application_name|host|port|connect_timeout|target_session_attrs|family)$/;

/** Masks the password of a connection URL, wherever it is. Returns only the mask if the URL cannot be parsed. */
export function maskConnection(url: string): string {
  const parts = /^([a-z][a-z0-9+.-]*:\/\/)([^/?#]*)([^?#]*)(?:\?([^#]*))?$/i.exec(url);
  if (parts === null) return MASK;
  const [, scheme = '', authority = '', path = '', query] = parts;
  const at = authority.lastIndexOf('@');
  const login = authority.slice(0, Math.max(0, at));
  const colon = login.indexOf(':');
  // For a proxy, a name without a password is a token.
  const isToken = login !== '' && /^https?:/i.test(scheme);
  const user = colon >= 0 ? `${login.slice(0, colon)}:${MASK}` : isToken ? MASK : login;
  const shown = query?.split('&').map((pair) => {
    const [name = ''] = pair.split('=');
    return PLAIN_PARAMETERS.test(name) ? pair : `${name}=${MASK}`;
  });
  if (`${path}${query ?? ''}`.includes('@')) return MASK;
  return `${scheme}${at < 0 ? '' : `${user}@`}${authority.slice(at + 1)}${path}${shown === undefined ? '' : `?${shown.join('&')}`}`;
}

/**
 * Returns every setting in force under this environment. `fileOf` names the `--env-file` that a variable comes from.
 */
export function shownSettings(
  env: Environment,
  readFile: ReadFile,
  fileOf: (variable: string) => string | null,
): ShownSetting[] {
  return Object.entries<Setting>(SETTINGS).map(([name, setting]) => {
    const secretFile = setting.secret === true ? given(env, `${name}_FILE`) : undefined;
    const text = given(env, name);
    const isSet = text !== undefined || secretFile !== undefined;
    const envFile = fileOf(name);
    const [source, file]: [ShownSetting['source'], string | null] =
      text === undefined && secretFile !== undefined
        ? ['secret-file', secretFile]
        : text === undefined
          ? ['default', null]
          : [envFile === null ? 'environment' : 'env-file', envFile];
    const value =
      setting.secret === true
        ? secretShown(name, setting, env, readFile)
        : plainShown({ ...setting, default: usualOf(name, setting, env) }, text);
    return {
      name,
      value,
      source,
      file: isSet ? file : null,
      unset: value === null && !isSet ? (setting.unset ?? null) : null,
    };
  });
}

function secretShown(name: string, setting: Setting, env: Environment, readFile: ReadFile): string | null {
  const read = readSecret(name, setting.rule, env, readFile);
  if (read === null || 'expected' in read) return null;
  return setting.connection === true ? maskConnection(read.read()) : MASK;
}

/** Returns a setting's default; that of BULK_LIVE_BUDGET is lowered as in `combined`. */
function usualOf(name: string, { default: usual }: Setting, env: Environment): string | undefined {
  if (name !== 'BULK_LIVE_BUDGET') return usual;
  const most = SETTINGS.BULK_MAX_SKUS.rule.safeParse(given(env, 'BULK_MAX_SKUS')?.trim());
  return most.success ? String(fittingLiveBudget(Number(usual), most.data)) : usual;
}

/** Formats a value. An invalid one may be a misplaced secret, so it is not shown if it has an @ or a query. */
function plainShown(
  { rule, default: usual }: Pick<Setting, 'rule'> & { readonly default: string | undefined },
  text: string | undefined,
): string | null {
  const value = text?.trim() || (usual ?? null);
  if (value === null) return null;
  return !rule.safeParse(value).success && /[@?]/.test(value) ? null : maskUrls(value);
}
