import { paceReader } from '../pace/view.ts';
import { type MirrorConfig, loadConfig, processSources } from '../config/config.ts';
import { paceLimits } from '../pace/policy.ts';
import { systemClock } from '../lib/clock.ts';
import { asJson } from '../status/json.ts';
import { awayScreen, screen } from '../status/screen.ts';
import type { Terminal } from '../status/style.ts';
import { readStatus, type Status } from '../status/status.ts';
import { type Health, judge, type HealthReport, healthOf } from '../status/health.ts';
import type { Sql } from '../store/db.ts';
import { readCounts } from '../store/catalog-counts.ts';
import { readStats } from '../status/stats.ts';
import { type Command, type CommandArgs, EXIT, UsageError } from './command.ts';
import { printError, withoutSecrets } from './print-error.ts';
import { withMirror } from './mirror.ts';
import { stopSignal } from './process.ts';
import { createCanvas, terminalOf } from './terminal.ts';

const WATCH_SECONDS = 2;
const LONGEST_WATCH_SECONDS = 86_400;
const EXIT_OF: Readonly<Record<Health, number>> = {
  healthy: EXIT.ok,
  degraded: EXIT.degraded,
  broken: EXIT.broken,
};

export const status: Command = {
  summary: 'show sync health and backlog',
  usage: 'status [--json] [--watch [seconds]]',
  examples: [
    ['catalog-mirror status', 'show the status once'],
    ['catalog-mirror status --watch 5', 'redraw every five seconds'],
    ['catalog-mirror status --json', 'print one JSON object'],
  ],
  exits: ['ok', 'degraded', 'broken', 'usage'],
  options: { json: { type: 'boolean' }, watch: { type: 'boolean' } },
  optionHelp: {
    json: 'print JSON',
    watch: `redraw until Ctrl-C, every given number of seconds (${WATCH_SECONDS})`,
  },
  optionalValues: ['watch'],
  positionals: false,
  async run({ values }) {
    const every = watchSeconds(values);
    const config = loadConfig(processSources.env, processSources.readFile, { need: 'database' });
    const show = values['json'] === true ? jsonOf : screenOf;
    if (every === null) return await showOnce(config, show);
    await watch(config, show, every * 1000);
    return EXIT.ok;
  },
};

/** A snapshot of the mirror's status; `status` null: it could not be read, and its health says why. */
interface Snapshot {
  readonly status: Status | null;
  readonly health: HealthReport;
  readonly now: Date;
}

type Show = (snapshot: Snapshot, terminal: Terminal) => string;

const jsonOf: Show = ({ status, health, now }) =>
  JSON.stringify(status === null ? { ...health, at: now } : asJson(status, health, now));
const screenOf: Show = ({ status, health, now }, terminal) =>
  status === null ? awayScreen(health, now, terminal) : screen(status, health, now, terminal);

function watchSeconds(values: CommandArgs['values']): number | null {
  const { watch: given } = values;
  if (given === undefined) return null;
  if (given === true) return WATCH_SECONDS;
  const seconds = Number(given);
  if (given === '' || !(seconds >= 0.1 && seconds <= LONGEST_WATCH_SECONDS))
    throw new UsageError([`--watch: expected seconds from 0.1 to ${LONGEST_WATCH_SECONDS}`]);
  return seconds;
}

/** What `status` reads, without the daemon's help. */
export async function readStatusOf(sql: Sql, config: MirrorConfig): Promise<Status> {
  const limits = paceLimits(config);
  return await readStatus(sql, {
    stats: () =>
      readStats(sql, {
        windowMs: limits.windowMs,
        liveBudget: config.bulk.liveBudget,
        paceOf: paceReader(limits),
        counts: () => readCounts(sql),
      }),
    limits,
    bulkMaxSkus: config.bulk.maxSkus,
  });
}

async function snapshot(sql: Sql, config: MirrorConfig): Promise<Snapshot> {
  const read = await readStatusOf(sql, config);
  const now = new Date();
  return { status: read, health: judge(read, now), now };
}

/** A mirror that cannot be read is as broken as one can be. */
function away(error: unknown): Snapshot {
  const text = withoutSecrets(error instanceof Error ? error.message : String(error));
  return { status: null, health: healthOf([{ level: 'broken', text }]), now: new Date() };
}

async function showOnce(config: MirrorConfig, show: Show): Promise<number> {
  const seen = await withMirror(config, (sql) => snapshot(sql, config)).catch((error: unknown) => {
    printError(error);
    return away(error);
  });
  process.stdout.write(`${show(seen, terminalOf(process.stdout, processSources.env))}\n`);
  return EXIT_OF[seen.health.verdict];
}

async function watch(config: MirrorConfig, show: Show, everyMs: number): Promise<void> {
  const signal = stopSignal();
  const stopped = new AbortController();
  const stopping = signal.promise.then(() => stopped.abort());
  const canvas = createCanvas(process.stdout);
  const draw = (seen: Snapshot) => canvas.draw(show(seen, terminalOf(process.stdout, processSources.env)));
  const drawing = async (sql: Sql) => {
    while (!stopped.signal.aborted) {
      draw(await snapshot(sql, config));
      await systemClock.sleep(everyMs, stopped.signal);
    }
  };
  try {
    while (!stopped.signal.aborted) {
      const watching = withMirror(config, drawing, stopped.signal).catch((error: unknown) => {
        if (!stopped.signal.aborted) draw(away(error));
      });
      // A server that hangs does not hold up the end.
      await Promise.race([watching, stopping]);
      await systemClock.sleep(everyMs, stopped.signal);
    }
  } finally {
    canvas.close();
    signal.dispose();
  }
}
