import { type Config, type MirrorConfig, VARIABLES } from '../../config/config.ts';
import { backslashWarnings, type Environment, lateWarnings } from '../../config/environment.ts';
import { isBasicPair, lintCredential } from '../../config/secrets.ts';
import { MINUTE_MS } from '../../lib/duration.ts';
import { paceLimits, rateFloor, sendsPerWindow } from '../../pace/policy.ts';
import { whyNothing } from '../../status/catalog.ts';
import type { Scope } from '../../store/sellers/scope.ts';
import { addressOf, compareAccount, type KnownAccount } from '../../store/setup/account.ts';
import { type CheckResult, fail, ok, warn } from './check.ts';

/** Finds signs of a credential damaged on its way. Values that no credential can have were refused at the start. */
export function checkCredential({ partner }: Pick<Config, 'partner'>): CheckResult[] {
  const [apiKey, secret] = [partner.apiKey.read(), partner.secret.read()];
  return Object.entries({ PARTNER_API_KEY: apiKey, PARTNER_SECRET: secret }).flatMap(([name, value]) => {
    const found = lintCredential(value);
    if (isBasicPair(value, apiKey))
      found.push('looks like api_key and secret in base64: give only the secret');
    return found.length === 0
      ? [ok(name.toLowerCase(), 'is set and well-formed')]
      : [
          warn(
            name.toLowerCase(),
            found.join(' and '),
            `compare ${name} with the value that the partner gave you`,
          ),
        ];
  });
}

const isSecret = (variable: string) => VARIABLES.some(({ name, secret }) => secret && name === variable);

/** Judges settings that are valid but look like a mistake, or that whatever starts the daemon reads differently. */
export function judgeEnvironment(
  warnings: readonly string[],
  env: Environment,
  fileOf: (variable: string) => string | null,
): CheckResult[] {
  return [
    ...warnings.map((text) =>
      warn('environment', text, 'correct its name or its value, or remove the variable'),
    ),
    ...lateWarnings(env, fileOf).map(({ text, remedy }) => warn('environment', text, remedy)),
    ...backslashWarnings(env, fileOf).map(({ variable, text }) =>
      warn(
        'environment',
        text,
        `for systemd, ${isSecret(variable) ? `give it by ${variable}_FILE` : 'write it twice'}`,
      ),
    ),
  ];
}

/** Judges whether the daemons have this environment. `others`: settings in which the daemon started last differs. */
export function judgeSettings(others: readonly string[], daemons: number | null): CheckResult[] {
  if (daemons === 0 || others.length === 0) return [];
  return [
    warn(
      'settings',
      `the daemon that was started last has others than this environment: ${others.join(', ')}`,
      'what doctor says goes by this environment: give it, and all daemons on this database, the same settings',
    ),
  ];
}

/** The partner's documented rate limit of an account, in requests per minute (partner rule 8.rate). */
const DOCUMENTED_PER_MINUTE = 200;

/** Judges the request share. `others`: requests of the account's other users in the last window; null: not known. */
export function judgeShare({ rate }: Pick<MirrorConfig, 'rate'>, others: number | null): CheckResult[] {
  const { limit, windowMs, share, floor } = rate;
  const limits = paceLimits({ rate });
  const window = windowMs === MINUTE_MS ? 'per minute' : `in ${windowMs / 1000} s`;
  const beside =
    others === null || others === 0 ? 'other services have used none' : `other services have used ${others}`;
  const text =
    `${sendsPerWindow(limits)} requests ${window} of the account's ${limit}, at least ${rateFloor({ rate })} ` +
    `while other services use theirs; ${beside}`;
  const findings: CheckResult[] = [];
  const perMinute = (limit * MINUTE_MS) / windowMs;
  if (perMinute > DOCUMENTED_PER_MINUTE)
    findings.push(
      warn(
        'request share',
        `PARTNER_RATE_LIMIT is ${Math.round(perMinute)} per minute; the partner documents ${DOCUMENTED_PER_MINUTE}`,
        "set it to your account's limit: above it, every request is rejected",
      ),
    );
  if (share > 0.95)
    findings.push(
      warn(
        'request share',
        `the mirror uses ${Math.round(share * 100)} % of the limit`,
        'lower PARTNER_RATE_SHARE: otherwise a burst of your other services gets all requests rejected',
      ),
    );
  if (floor > share)
    findings.push(
      warn(
        'request share',
        `PARTNER_RATE_FLOOR (${floor}) is above PARTNER_RATE_SHARE (${share})`,
        'lower it: at this value the mirror never slows down for other services',
      ),
    );
  return [ok('request share', text), ...findings];
}

const ADOPT = 'run `catalog-mirror migrate --adopt-account`';
/** How long doctor mentions that PARTNER_API_KEY was replaced: a week. */
const NEWS_MS = 7 * 86_400_000;

/** Judges whether the database mirrors the account of this configuration. Pure; `now` in epoch milliseconds. */
export function judgeAccount(
  { partner }: Pick<Config, 'partner'>,
  known: KnownAccount,
  now: number,
): CheckResult {
  const { baseUrl } = partner;
  const replaced = (since: string) =>
    warn(
      'account',
      `PARTNER_API_KEY ${since}, and an api_key identifies an account`,
      `nothing if it is a new key of the same account; else stop all daemons and ${ADOPT}`,
    );
  switch (compareAccount(known, { baseUrl, apiKey: partner.apiKey.read() })) {
    case 'first':
      return ok('account', 'none is mirrored yet');
    case 'other-partner':
      return fail(
        'account',
        `this database mirrors ${known.address}, and PARTNER_BASE_URL is ${addressOf(baseUrl)}`,
        `use another database, or stop all daemons and ${ADOPT}`,
      );
    case 'other-key':
      return replaced('is another one than the mirror uses');
    case 'same': {
      const { keySince, keyReplaced } = known;
      return keyReplaced && keySince !== null && now - keySince.getTime() < NEWS_MS
        ? replaced(`was replaced at ${keySince.toISOString()}`)
        : ok('account', `the mirror is that of ${known.address} and of this api_key`);
    }
  }
}

/** Judges MIRROR_SCOPE by the existing rules. Pure. */
export function judgeScope({ catalog }: Pick<Config, 'catalog'>, stored: Scope): CheckResult[] {
  const scoped = catalog.scope === 'scope';
  const nothing = whyNothing({ ...stored, scoped }, null);
  if (nothing !== null)
    return [warn('scope', nothing, 'insert rules into catalog.scope, or set MIRROR_SCOPE=catalog')];
  if (!scoped) return [];
  return [
    ok('scope', `MIRROR_SCOPE is scope: what the rules of catalog.scope say is priced (${stored.rules})`),
  ];
}
