import { hostname, userInfo } from 'node:os';
import { loadConfig, processSources } from '../config/config.ts';
import { formatDuration, parseDuration } from '../lib/duration.ts';
import { untilText } from '../status/pause.ts';
import { type Pause, pauseRequests, resumeRequests } from '../store/sellers/pause.ts';
import { type Arguments, type Command, EXIT, problemsIn, UsageError } from './command.ts';
import { withMirror } from './mirror.ts';

const LONGEST_MS = 365 * 86_400_000;

/** What a pause means, for the help of `pause`. */
const WHAT_IT_MEANS = [
  'While requests are paused, none leaves to the partner: no daemon on this database sends any, `refresh` and `verify` wait or',
  'say so, and `doctor` checks all but the partner. Requests under way are finished, and a manifest that is being downloaded is',
  'applied. SQL, metrics, the page and status go on; prices get older and are no longer actionable when they are too old.',
  'A pause is stored in Postgres and survives restarts. Other services that use catalog.take_request are not paused.',
];

export const pause: Command = {
  summary: 'stop sending requests to the partner, for a given time or until resume',
  usage: 'pause [--for 2h]',
  examples: [
    ['catalog-mirror pause --for 2h', 'for maintenance at the partner: requests go again after two hours'],
    ['catalog-mirror pause', 'until `catalog-mirror resume`'],
  ],
  exits: ['ok', 'failed', 'usage'],
  options: { for: { type: 'string' } },
  optionHelp: {
    for: 'end the pause by itself after this time, such as 30m or 2h; where requests are paused already, this is the new end',
  },
  moreHelp: WHAT_IT_MEANS,
  positionals: false,
  problemsOf: problemsIn(lengthOf),
  async run({ print, ...args }) {
    const forMs = lengthOf(args);
    const config = loadConfig(processSources.env, processSources.readFile, { need: 'database' });
    await withMirror(config, async (sql, which) => {
      if (which !== null) print(`in ${which}:`);
      const { pause: written, wasPaused } = await pauseRequests(sql, { forMs, by: caller() });
      const length = forMs === null ? '' : ` (${formatDuration(forMs)})`;
      print(
        wasPaused
          ? `requests were paused already, and are now ${untilText(shown(written))}${length}`
          : `requests to the partner are paused ${untilText(shown(written))}${length}; those under way are finished`,
      );
    });
    return EXIT.ok;
  },
};

export const resume: Command = {
  summary: 'send requests to the partner again after pause',
  usage: 'resume',
  examples: [['catalog-mirror resume', 'end the pause; what has become due meanwhile is fetched by worth']],
  exits: ['ok', 'failed', 'usage'],
  options: {},
  optionHelp: {},
  positionals: false,
  async run({ print }) {
    const config = loadConfig(processSources.env, processSources.readFile, { need: 'database' });
    await withMirror(config, async (sql, which) => {
      if (which !== null) print(`in ${which}:`);
      const ended = await resumeRequests(sql, caller());
      print(
        ended === null
          ? 'requests are not paused'
          : `requests to the partner go again; they were paused by ${ended.by} since ${new Date(ended.since).toISOString()}`,
      );
    });
    return EXIT.ok;
  },
};

const shown = ({ until }: Pause) => ({ until: until === null ? null : new Date(until) });

function lengthOf({ values: { for: given } }: Arguments): number | null {
  if (given === undefined) return null;
  const ms = parseDuration(String(given));
  if (ms === null || ms <= 0 || ms > LONGEST_MS)
    throw new UsageError([
      `--for: expected a duration such as 30m or 2h, at most ${formatDuration(LONGEST_MS)}`,
    ]);
  return ms;
}

/** Returns who asks, as shown to others. A user without an entry of its own, as in a container, is shown by number. */
function caller(): string {
  return `${userName()}@${hostname()}`;
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
