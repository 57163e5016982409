import { loadConfig, type MirrorConfig, processSources, type WebhookConfig } from '../config/config.ts';
import type { Sink } from '../follow/delivery.ts';
import { outputTo } from '../follow/output.ts';
import { systemClock } from '../lib/clock.ts';
import { DatabaseAway } from '../store/connection/sql-errors.ts';
import { createLogThrottle } from '../telemetry/log/throttle.ts';
import { type Arguments, type Command, EXIT, problemsIn, UsageError } from './command.ts';
import { followOn } from './follow/following.ts';
import { discard, forget, listFollowers, listLetters, resend } from './follow/keeping.ts';
import { followLines, lifeLines } from './follow/lines.ts';
import { isPooled, refuseMoving } from './follow/pooled.ts';
import {
  ATTEMPTS,
  BATCH,
  FILTER_HELP,
  type Follow,
  receiverOf,
  type Wanted,
  wantedBy,
  webhookProblems,
} from './follow/wanted.ts';
import { openLog } from './log.ts';
import { findMirror, withMirror } from './mirror.ts';
import { stopSignal } from './process.ts';

/** How long a delivery may still take once the process is told to stop. */
const STOP_WITHIN_MS = 5000;

export const follow: Command = {
  summary: 'print changes as they come, as lines of JSON, or post them to a webhook',
  usage: [
    'follow [--name <name>] [--from now|oldest|start|<position>] [--filter <filter>]… [--once]',
    'follow --name <name> --webhook <url> [--from …] [--filter <filter>]…',
    'follow --list [--json]',
    'follow --name <name> --dead-letters [--json]',
    'follow --name <name> --resend --webhook <url>',
    'follow --name <name> --discard',
    'follow --name <name> --forget',
  ].join('\n'),
  examples: [
    ['catalog-mirror follow', 'every change from now on, until Ctrl-C'],
    [
      'catalog-mirror follow --name prices --from start --filter kind=price --once',
      'what is new since the last run; the first time all prices that there are',
    ],
    [
      'catalog-mirror follow --name shop --webhook https://shop.example/changes --filter watchlist',
      'post changes of what is on catalog.watchlist, signed with WEBHOOK_SECRET',
    ],
    ['catalog-mirror follow --list', 'who follows, and how far behind'],
  ],
  exits: ['ok', 'failed', 'usage'],
  options: {
    name: { type: 'string' },
    from: { type: 'string' },
    filter: { type: 'string', multiple: true },
    once: { type: 'boolean' },
    webhook: { type: 'string' },
    batch: { type: 'string' },
    attempts: { type: 'string' },
    reset: { type: 'boolean' },
    list: { type: 'boolean' },
    'dead-letters': { type: 'boolean' },
    resend: { type: 'boolean' },
    discard: { type: 'boolean' },
    forget: { type: 'boolean' },
    json: { type: 'boolean' },
  },
  optionHelp: {
    name: 'keep the position under this name, and go on from it the next time; without it nothing is kept',
    from:
      'where a new name begins: now (default), oldest (what is still kept), start (first all there is, then the ' +
      'changes), or a position',
    filter: FILTER_HELP,
    once: 'exit when everything is delivered, instead of waiting for changes',
    webhook: 'post to this URL instead of printing',
    batch: `most changes in one post (${BATCH}); a post has no more than 96 KiB, unless one change has`,
    attempts:
      `refusals (as 400 or 422) after which a batch becomes a dead letter (${ATTEMPTS}); ` +
      'with --once, failures after which it ends, also of Postgres',
    reset: 'begin at --from although the name is known; with --from start its dead letters are deleted',
    list: 'list names, positions, how far behind each is, and what its receiver said last',
    'dead-letters': 'list batches that the receiver has refused for good',
    resend: 'post them again, oldest first; those that are taken are gone',
    discard: 'delete them',
    forget: 'delete the name, its position and its dead letters',
    json: 'print one JSON object per row',
  },
  moreHelp: [
    'Each change is delivered at least once and in order. A receiver that is down loses nothing: its position stands until it is up again.',
  ],
  positionals: false,
  problemsOf,
  endsUnread: () => true,
  async run({ print, ...args }) {
    // An unusable `--webhook` URL by itself is reported together with what the configuration lacks for it.
    if (problemsIn(wantedBy)(args).length > 0) throw new UsageError(problemsOf(args));
    const wanted = wantedBy(args);
    return await run(wanted, print);
  },
};

function problemsOf(args: Arguments): readonly string[] {
  return [...problemsIn(wantedBy)(args), ...webhookProblems(args)];
}

async function run(wanted: Wanted, print: (line: string) => void): Promise<number> {
  const { env, readFile } = processSources;
  if (wanted.do === 'follow' && wanted.webhook === null) {
    const config = loadConfig(env, readFile, { need: 'database' });
    return await following(config, wanted, outputTo(process.stdout));
  }
  if (wanted.do === 'follow' || wanted.do === 'resend') {
    const config: WebhookConfig = loadConfig(env, readFile, { need: 'webhook' });
    const batch = wanted.do === 'follow' ? wanted.batch : BATCH;
    const receiver = receiverOf(config, wanted.name ?? '', wanted.webhook ?? '', batch);
    if (wanted.do === 'follow') return await following(config, wanted, receiver);
    return await withMirror(config, (sql) => resend(sql, wanted.name, receiver, print));
  }
  const config = loadConfig(env, readFile, { need: 'database' });
  return await withMirror(config, async (sql) => {
    if (wanted.do === 'list') return await listFollowers(sql, wanted.json, print);
    if (wanted.do === 'dead-letters') return await listLetters(sql, wanted, print);
    return wanted.do === 'discard'
      ? await discard(sql, wanted.name, print)
      : await forget(sql, wanted.name, print);
  });
}

/** Follows until a signal, or until `once` is done. */
async function following(config: MirrorConfig, wanted: Follow, sink: Sink): Promise<number> {
  const signal = stopSignal(systemClock);
  const [stopped, patience, over] = [new AbortController(), new AbortController(), new AbortController()];
  const stopping = async () => {
    await signal.promise;
    stopped.abort();
    await systemClock.sleep(STOP_WITHIN_MS, over.signal);
    patience.abort();
  };
  void stopping();
  const log = openLog(config, 'stderr');
  const throttle = createLogThrottle(systemClock);
  const lines = lifeLines(log, throttle, wanted.name);
  try {
    return await withMirror(
      config,
      async (sql, which, url) => {
        if (which !== null) process.stderr.write(`in ${which}:\n`);
        // This connection only served to wait for Postgres, and to explain what is wrong with it.
        const isBehindPooler = wanted.name !== null && (await isPooled(sql));
        await sql.end({ timeout: 1 });
        if (isBehindPooler) await refuseMoving(url);
        const { end, place } = await followOn({
          ...lines,
          wanted,
          sink,
          filter: wanted.filter,
          attempts: wanted.attempts,
          once: wanted.once,
          clock: systemClock,
          random: Math.random,
          stopped: stopped.signal,
          patience: patience.signal,
          tell: followLines(log, throttle, wanted.name),
          url: placeOf(config, url),
        });
        // A reader of stdout that has enough, such as `| head`, is not a failure.
        if (end === 'unwanted' && wanted.webhook === null) return EXIT.ok;
        lines.ended(end, place);
        return end === 'unwanted' || end === 'undelivered' ? EXIT.failed : EXIT.ok;
      },
      { giveUp: stopped.signal, lasts: !wanted.once, forReaders: wanted.name === null },
    );
  } catch (error) {
    // It was still waiting for Postgres when it was stopped.
    if (!stopped.signal.aborted || !(error instanceof DatabaseAway)) throw error;
    lines.ended('stopped', null);
    return EXIT.ok;
  } finally {
    over.abort();
    signal.dispose();
    await sink.close();
  }
}

/** Returns where Postgres is: at `url` first, later found again, because its port or password may have changed. */
function placeOf(config: MirrorConfig, url: string): () => Promise<string> {
  let isFirst = true;
  return async () => {
    if (!isFirst) config.database.url?.refresh();
    const found = isFirst ? url : (await findMirror(config)).url;
    isFirst = false;
    return found ?? url;
  };
}
