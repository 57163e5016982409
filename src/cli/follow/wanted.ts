import type { WebhookConfig } from '../../config/config.ts';
import { KINDS, parseFilters } from '../../follow/filter.ts';
import { createWebhook, webhookProblem } from '../../follow/webhook.ts';
import { systemClock } from '../../lib/clock.ts';
import type { Filter } from '../../store/history/feed.ts';
import type { Beginning } from '../../store/history/followers.ts';
import { VERSION } from '../../version.ts';
import { type Arguments, numberOption, UsageError } from '../command.ts';

export const ATTEMPTS = 10;
export const BATCH = 500;
const MAX_BATCH = 1000;
/** No full stop, because it joins the parts of a signature. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/;

/** What one call of `follow` is to do. */
export type Wanted =
  | { readonly do: 'list'; readonly json: boolean }
  | { readonly do: 'dead-letters'; readonly name: string; readonly json: boolean }
  | { readonly do: 'resend'; readonly name: string; readonly webhook: string }
  | { readonly do: 'discard' | 'forget'; readonly name: string }
  | Follow;

export interface Follow {
  readonly do: 'follow';
  /** Null: no position is kept. */
  readonly name: string | null;
  readonly from: Beginning;
  readonly reset: boolean;
  readonly filter: Filter;
  readonly once: boolean;
  readonly webhook: string | null;
  readonly attempts: number;
  readonly batch: number;
}

const ALONE = ['list', 'dead-letters', 'resend', 'discard', 'forget'] as const;
/** Options that each of these allows besides `--name`. */
const WITH: Readonly<Record<(typeof ALONE)[number], readonly string[]>> = {
  list: ['json'],
  'dead-letters': ['json'],
  resend: ['webhook'],
  discard: [],
  forget: [],
};
const FOLLOWS = ['from', 'reset', 'filter', 'once', 'webhook', 'attempts', 'batch'];

/**
 * Reads the options of `follow`. Pure.
 *
 * @throws UsageError with every problem at once
 */
export function wantedBy({ values, lists, given }: Pick<Arguments, 'values' | 'lists' | 'given'>): Wanted {
  const problems: string[] = [];
  const name = nameOf(values, problems);
  const webhook = values['webhook'] === undefined ? null : String(values['webhook']);
  const asked = ALONE.filter((option) => values[option] === true);
  const [alone, second] = asked;
  if (second !== undefined) problems.push(`--${second}: does not go with --${alone}`);
  if (alone === undefined) {
    const follow = followOf({ values, lists, given }, name, webhook, problems);
    if (problems.length > 0) throw new UsageError(problems);
    return follow;
  }
  for (const option of [...FOLLOWS, 'json'])
    if (values[option] !== undefined && !WITH[alone].includes(option))
      problems.push(`--${option}: does not go with --${alone}`);
  if (alone !== 'list' && !given.has('name')) problems.push(`--${alone}: needs --name`);
  if (alone === 'resend' && !given.has('webhook')) problems.push('--resend: needs --webhook');
  if (problems.length > 0) throw new UsageError(problems);
  const json = values['json'] === true;
  if (alone === 'list') return { do: alone, json };
  if (alone === 'dead-letters') return { do: alone, name: name ?? '', json };
  if (alone === 'resend') return { do: alone, name: name ?? '', webhook: webhook ?? '' };
  return { do: alone, name: name ?? '' };
}

function nameOf(values: Arguments['values'], problems: string[]): string | null {
  const given = values['name'];
  if (given === undefined) return null;
  if (!NAME.test(String(given)))
    problems.push('--name: expected 1 to 63 letters, digits, _ or -, the first a letter or a digit');
  return String(given);
}

function followOf(
  { values, lists, given }: Pick<Arguments, 'values' | 'lists' | 'given'>,
  name: string | null,
  webhook: string | null,
  problems: string[],
): Follow {
  const attempts = numberOption(values, 'attempts', ATTEMPTS, { min: 1, max: 1000 }, problems);
  const batch = numberOption(values, 'batch', BATCH, { min: 1, max: MAX_BATCH }, problems);
  const reset = values['reset'] === true;
  if (!given.has('name') && webhook !== null)
    problems.push('--webhook: needs --name, under which the position is kept');
  if (!given.has('name') && reset) problems.push('--reset: needs --name');
  if (reset && !given.has('from')) problems.push('--reset: needs --from');
  if (values['json'] !== undefined && !given.has('list') && !given.has('dead-letters'))
    problems.push('--json: only with --list and --dead-letters; changes are JSON in any case');
  for (const option of ['attempts', 'batch'])
    if (!given.has('webhook') && values[option] !== undefined) problems.push(`--${option}: needs --webhook`);
  return {
    do: 'follow',
    name,
    from: beginningOf(values['from'], problems),
    reset,
    filter: parseFilters(lists['filter'] ?? [], problems),
    once: values['once'] === true,
    webhook,
    attempts,
    batch,
  };
}

function beginningOf(given: Arguments['values'][string], problems: string[]): Beginning {
  if (given === undefined) return 'now';
  if (given === 'now' || given === 'oldest' || given === 'start') return given;
  if (/^\d{1,18}$/.test(String(given))) return BigInt(String(given));
  problems.push('--from: expected now, oldest, start or a position');
  return 'now';
}

export const FILTER_HELP =
  `watchlist, brand=…, sku=… or kind=${KINDS.join('|')}; ` +
  'may be given more than once: any value of a name, and all names';

/** Bytes of a post, less than the 100 kB that Express takes, and the part of them for what surrounds the changes. */
const POST_BYTES = 96 * 1024;
const ENVELOPE_BYTES = 1024;
export const BATCH_BYTES = POST_BYTES - ENVELOPE_BYTES;

/** Returns what is wrong with the URL of `--webhook`, whatever the configuration allows. Pure. */
export function webhookProblems({ values: { webhook } }: Pick<Arguments, 'values'>): string[] {
  const problem = webhook === undefined ? null : webhookProblem(URL.parse(String(webhook)), true);
  return problem === null ? [] : [`--webhook: ${problem}`];
}

/**
 * Returns the receiver at a URL, which the configuration must allow.
 *
 * @throws UsageError if it does not
 */
export function receiverOf(
  { webhook, partner }: Pick<WebhookConfig, 'webhook' | 'partner'>,
  follower: string,
  text: string,
  changes: number,
): ReturnType<typeof createWebhook> {
  const url = URL.parse(text);
  const problem = webhookProblem(url, webhook.allowPrivate);
  const { secret, previousSecret } = webhook;
  const problems = [
    ...(problem === null ? [] : [`--webhook: ${problem}`]),
    ...(secret === null
      ? [
          'WEBHOOK_SECRET: not set; --webhook needs it (or a file in WEBHOOK_SECRET_FILE), for the receiver to know who sends',
        ]
      : []),
  ];
  if (url === null || secret === null || problems.length > 0) throw new UsageError(problems);
  const sources = previousSecret === null ? [secret] : [secret, previousSecret];
  return createWebhook({
    url,
    follower,
    limits: { changes, bytes: BATCH_BYTES },
    secrets() {
      for (const source of sources) source.refresh();
      return sources.map((source) => source.read());
    },
    allowPrivate: webhook.allowPrivate,
    timeoutMs: webhook.timeoutMs,
    userAgent: `catalog-mirror/${VERSION}`,
    proxy: partner.proxy,
    clock: systemClock,
  });
}
