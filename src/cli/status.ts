import { type MirrorConfig, loadConfig, processSources } from '../config/config.ts';
import { systemClock } from '../lib/clock.ts';
import { shownJson } from '../lib/json.ts';
import { paceLimits } from '../pace/policy.ts';
import { paceReader } from '../pace/view.ts';
import { readFacts } from '../status/facts.ts';
import { type Health, judgeHealth, NO_OWN_FACTS } from '../status/health.ts';
import { asJson } from '../status/json.ts';
import { type MirrorState } from '../status/reason.ts';
import { awayScreen, screen } from '../status/screen.ts';
import { readStatus, type Status } from '../status/status.ts';
import type { Terminal } from '../status/style.ts';
import type { Sql } from '../store/connection/db.ts';
import { isLockNotAvailable } from '../store/connection/locks.ts';
import { adviceOn } from '../store/connection/remedies.ts';
import { OccupiedError } from '../store/setup/occupied.ts';
import { readDaemonSettings } from '../store/setup/sql-settings.ts';
import { type Counting, readCounts } from '../store/status/counts-reader.ts';
import { type Arguments, type Command, EXIT, problemsIn, UsageError } from './command.ts';
import { NoMirror, printError, withoutSecrets } from './errors.ts';
import { EarlierVersion, LaterVersion, NoTables, NotAllowed, Unclear } from './explained.ts';
import { expectPrimary, OnStandby, withMirror } from './mirror.ts';
import { stopSignal } from './process.ts';
import { createCanvas, type Printer, terminalOf } from './terminal.ts';

const WATCH_SECONDS = 2;
const LONGEST_WATCH_SECONDS = 86_400;
const EXIT_OF: Readonly<Record<MirrorState, number>> = {
  healthy: EXIT.ok,
  filling: EXIT.degraded,
  degraded: EXIT.degraded,
  paused: EXIT.degraded,
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
  problemsOf: problemsIn(watchSeconds),
  endsUnread: ({ values }) => values['watch'] !== undefined,
  async run(args) {
    const every = watchSeconds(args);
    const config = loadConfig(processSources.env, processSources.readFile, { need: 'database' });
    const show = args.values['json'] === true ? jsonOf : screenOf;
    if (every === null) return await showOnce(config, show, args.print);
    await watch(config, show, every * 1000);
    return EXIT.ok;
  },
};

/** One reading of the mirror. `status` is null if it could not be read; the reason says why. */
interface Snapshot {
  readonly status: Status | null;
  readonly health: Health;
  readonly now: Date;
  /** Which mirror this is, in words; null if DATABASE_URL names it. */
  readonly which: string | null;
}

type Show = (snapshot: Snapshot, terminal: Terminal) => string;

const jsonOf: Show = ({ status, health, now }) =>
  shownJson(status === null ? { ...health, at: now } : asJson(status, health, now));
const screenOf: Show = ({ status, health, now, which }, terminal) =>
  status === null ? awayScreen(health, terminal) : screen(status, health, now, terminal, which);

function watchSeconds({ values: { watch: given } }: Arguments): number | null {
  if (given === undefined) return null;
  if (given === true) return WATCH_SECONDS;
  const seconds = Number(given);
  if (given === '' || !(seconds >= 0.1 && seconds <= LONGEST_WATCH_SECONDS))
    throw new UsageError([`--watch: expected seconds from 0.1 to ${LONGEST_WATCH_SECONDS}`]);
  return seconds;
}

/**
 * Reads and judges the mirror for `status`. What only a daemon knows of itself is missing. If somebody has locked a
 * table, the figures may be missing, as they are for a daemon; the mirror is judged regardless.
 */
export async function readSnapshot(
  sql: Sql,
  config: MirrorConfig,
  counting: Counting,
  which: string | null,
): Promise<Snapshot> {
  // Uses the daemon's settings, because those of whoever asks may differ.
  const { bulkMaxSkus, liveBudget, ...daemons } = (await readDaemonSettings(sql)) ?? {
    bulkMaxSkus: config.bulk.maxSkus,
    liveBudget: config.bulk.liveBudget,
  };
  const limits = { ...paceLimits(config), ...daemons };
  const counts = await readCounts(sql, counting);
  const read = await readFacts(sql, {
    windowMs: limits.windowMs,
    paceOf: paceReader(limits),
    counts: () => Promise.resolve(counts),
  });
  const { facts } = read;
  if (facts.daemons === 0) await expectPrimary(sql);
  const status = await readStatus(sql, read, counts, { limits, bulkMaxSkus, liveBudget }).catch(
    (error: unknown) => {
      if (isLockNotAvailable(error)) return null;
      throw error;
    },
  );
  const storeFailure = (await takesNoWrites(sql)) ? 'read-only' : null;
  return { status, health: judgeHealth(facts, { ...NO_OWN_FACTS, storeFailure }), now: facts.now, which };
}

/** Does the same for callers that need the figures; throws if there are none. */
export async function readStatusOf(
  sql: Sql,
  config: MirrorConfig,
  counting: Counting = 'now',
): Promise<Snapshot & { readonly status: Status }> {
  const { status, ...judged } = await readSnapshot(sql, config, counting, null);
  if (status === null) throw new Error(judged.health.reasons[0]?.text ?? 'a table of the mirror is locked');
  return { ...judged, status };
}

/**
 * Returns whether new sessions of the mirror's owner are read-only, by a setting of its role, the database or the
 * server. This session cannot tell: its state was decided when it began, and may come only from the URL or another
 * role.
 */
async function takesNoWrites(sql: Sql): Promise<boolean> {
  const [row] = await sql<[{ refused: boolean }]>`
    select coalesce(
      (select split_part(given, '=', 2)::boolean from pg_db_role_setting s cross join unnest(s.setconfig) given
       where given like 'default_transaction_read_only=%'
         and s.setdatabase in (0, (select oid from pg_database where datname = current_database()))
         and s.setrole in (0, (select relowner from pg_class where oid = to_regclass('catalog.skus')))
       order by s.setrole = 0, s.setdatabase = 0 limit 1),
      (select setting = 'on' and source not in ('client', 'session', 'user', 'database', 'database user') from pg_settings
       where name = 'default_transaction_read_only')) as refused`;
  return row.refused;
}

/** Errors that do not mean broken: there is no mirror, or none that can be read here, by this role or this version. */
const UNREAD = [
  NoMirror,
  NoTables,
  LaterVersion,
  NotAllowed,
  EarlierVersion,
  OnStandby,
  Unclear,
  OccupiedError,
];

const isUnread = (error: unknown): boolean => UNREAD.some((kind) => error instanceof kind);

/** A daemon that is just starting creates what is missing: whoever watches has often started both at once. */
const isYetToCome = (error: unknown): boolean => error instanceof NoMirror || error instanceof NoTables;

/** Returns the snapshot of a mirror that cannot be read, which is as broken as can be. */
function away(error: unknown): Snapshot {
  const message = error instanceof Error ? error.message.replaceAll('\n', '; ') : String(error);
  const { what, hint } = adviceOn(error);
  const said = what === null ? message : `${what}: ${message}`;
  const unreadable = `${withoutSecrets(said)}; ${hint ?? '`catalog-mirror doctor` says what to do'}`;
  const health = judgeHealth(null, { ...NO_OWN_FACTS, unreadable });
  return { status: null, health, now: new Date(), which: null };
}

async function showOnce(config: MirrorConfig, show: Show, print: Printer['print']): Promise<number> {
  const seen = await withMirror(config, (sql, which) => readSnapshot(sql, config, 'now', which)).catch(
    (error: unknown) => {
      if (isUnread(error)) throw error;
      printError(error);
      return away(error);
    },
  );
  print(show(seen, terminalOf(process.stdout, processSources.env)));
  return EXIT_OF[seen.health.state];
}

async function watch(config: MirrorConfig, show: Show, everyMs: number): Promise<void> {
  const signal = stopSignal(systemClock);
  const stopped = new AbortController();
  const stopping = signal.promise.then(() => stopped.abort());
  const canvas = createCanvas(process.stdout);
  let wasRead = false;
  const draw = (seen: Snapshot) => canvas.draw(show(seen, terminalOf(process.stdout, processSources.env)));
  const drawing = async (sql: Sql, which: string | null) => {
    while (!stopped.signal.aborted) {
      draw(await readSnapshot(sql, config, 'seldom', which));
      wasRead = true;
      await systemClock.sleep(everyMs, stopped.signal);
    }
  };
  try {
    while (!stopped.signal.aborted) {
      const watching = withMirror(config, drawing, { giveUp: stopped.signal, lasts: true }).catch(
        (error: unknown) => {
          if (stopped.signal.aborted) return;
          // What was read before may be read again, as after a primary has become a standby, or while it is migrated.
          const mayCome = wasRead || isYetToCome(error) || !isUnread(error);
          if (error instanceof NotAllowed || !mayCome) throw error;
          draw(away(error));
        },
      );
      // A server that hangs must not delay the end.
      await Promise.race([watching, stopping]);
      await systemClock.sleep(everyMs, stopped.signal);
    }
  } finally {
    canvas.close();
    signal.dispose();
  }
}
