import { z } from 'zod';
import { checkBaseUrl } from '../partner/origin.ts';
import type { Rule } from './rules.ts';
import type { SETTINGS } from './settings.ts';

type Name = keyof typeof SETTINGS;
type Shape = { [N in Name]: (typeof SETTINGS)[N]['rule'] };
type Values = z.output<z.ZodObject<Shape>>;

/**
 * Combines the rules of `shape` (by variable) with the rules between settings. The latter are checked only if all of
 * their settings are read and valid, so that one mistake is one problem. `isGiven` distinguishes given values from
 * defaults.
 */
export function combined(
  shape: Readonly<Record<string, Rule | z.ZodNullable<Rule>>>,
  isGiven: (name: Name) => boolean,
) {
  return z
    .object(shape as unknown as Shape)
    .refine(
      ({ PARTNER_BASE_URL: url, PARTNER_ALLOW_INSECURE: allowed }) =>
        checkBaseUrl(new URL(url), { allowInsecure: allowed }) === null,
      // Only the scheme can be wrong here: the variable's own rule checks the rest.
      between(
        ['PARTNER_BASE_URL', 'PARTNER_ALLOW_INSECURE'],
        () => 'an https:// URL (http only on a loopback host, or with PARTNER_ALLOW_INSECURE=true)',
      ),
    )
    .refine(
      ({ BULK_LIVE_BUDGET: budget, BULK_MAX_SKUS: max }) => budget <= max || !isGiven('BULK_LIVE_BUDGET'),
      between(
        ['BULK_LIVE_BUDGET', 'BULK_MAX_SKUS'],
        ({ BULK_MAX_SKUS: max }) => `at most BULK_MAX_SKUS (${max})`,
      ),
    )
    .refine(
      ({ PARTNER_RATE_SHARE: part, PARTNER_RATE_LIMIT: limit }) => limit * part >= 1,
      between(
        ['PARTNER_RATE_SHARE', 'PARTNER_RATE_LIMIT'],
        ({ PARTNER_RATE_LIMIT: limit }) =>
          `a share that leaves at least one of PARTNER_RATE_LIMIT (${limit}) requests a window`,
      ),
    )
    .refine(
      ({ DAILY_RETENTION: daily, HISTORY_RETENTION: history }) =>
        daily === 0 || (history > 0 && daily >= history),
      between(['DAILY_RETENTION', 'HISTORY_RETENTION'], ({ HISTORY_RETENTION: history }) =>
        history === 0
          ? '0, because HISTORY_RETENTION is 0 and keeps all changes'
          : 'at least HISTORY_RETENTION, whose changes are newer',
      ),
    )
    .transform((values) => ({
      ...values,
      // The default budget is lowered to a smaller BULK_MAX_SKUS. An explicit budget is a problem instead.
      ...('BULK_MAX_SKUS' in values && {
        BULK_LIVE_BUDGET: fittingLiveBudget(values.BULK_LIVE_BUDGET, values.BULK_MAX_SKUS),
      }),
    }));
}

/** Returns the default BULK_LIVE_BUDGET, lowered to fit BULK_MAX_SKUS. */
export const fittingLiveBudget = (budget: number, maxSkus: number): number => Math.min(budget, maxSkus);

/** Describes how a rule between settings applies: as a problem of the first one, with what is expected of it. */
function between(names: readonly [Name, ...Name[]], expected: (values: Values) => string) {
  return {
    path: [names[0]],
    params: { of: 'many' },
    error: ({ input }: { input?: unknown }) => expected(input as Values),
    when: ({ value, issues }: z.core.ParsePayload) =>
      names.every((name) => Object.hasOwn(value as Values, name)) &&
      !issues.some(({ path }) => names.includes(path?.[0] as Name)),
  };
}
