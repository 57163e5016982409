import type { Config } from '../../config/config.ts';
import { addressOf, compareAccount, type KnownAccount } from '../../store/setup/account.ts';
import { type CheckResult, fail, ok, warn } from './check.ts';

const ADOPT = 'run `catalog-mirror migrate --adopt-account`';
/** For a week after PARTNER_API_KEY was replaced, doctor mentions it. */
const NEWS_MS = 7 * 86_400_000;

/** Whether the database mirrors the account of this configuration. Pure; `now` in epoch milliseconds. */
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
