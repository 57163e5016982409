import type { Config } from '../../config/config.ts';
import { whyNothing } from '../../status/scope.ts';
import type { Scope } from '../../store/sellers/scope.ts';
import { type CheckResult, ok, warn } from './check.ts';

/** Judges MIRROR_SCOPE by the rules there are. Pure. */
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
