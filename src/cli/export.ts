import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { loadConfig, processSources } from '../config/config.ts';
import { systemClock } from '../lib/clock.ts';
import { formatAge } from '../lib/duration.ts';
import { count } from '../lib/format.ts';
import type { Sql, Tx } from '../store/connection/db.ts';
import { isLockNotAvailable } from '../store/connection/locks.ts';
import {
  exportColumns,
  estimateRows,
  type Export,
  EXPORTS,
  hasSince,
  readExport,
  tablesOf,
  lockExported,
} from '../store/history/export.ts';
import { type Arguments, type Command, EXIT, problemsIn, UsageError } from './command.ts';
import { createPendingFile, NotWritten, type PendingFile } from './export-pending-file.ts';
import { hiddenLine } from './hidden-rows.ts';
import { withMirror } from './mirror.ts';
import { cancelledBy, untilStopped } from './process.ts';

const BATCH = 5000;
const LOG_EVERY_MS = 5000;
/** Postgres writes dates before the year 1 differently. */
const DAY = /^(?!0000)\d{4}-\d{2}-\d{2}$/;

export const exportFiles: Command = {
  summary: 'write prices, their history, daily prices and products as Parquet files, all of one moment',
  usage:
    'export --out <folder> [--since <date>] [--replace]\n' +
    'export --what prices|history|daily|products --out <file> [--since <date>] [--replace]',
  examples: [
    [
      'catalog-mirror export --out mirror-files',
      'prices.parquet, history.parquet, daily.parquet, products.parquet',
    ],
    [
      'catalog-mirror export --what history --since 2026-01-01 --out changes.parquet --replace',
      'the changes of this year, in the place of the file from before',
    ],
  ],
  exits: ['ok', 'failed', 'usage'],
  options: {
    what: { type: 'string' },
    out: { type: 'string' },
    since: { type: 'string' },
    replace: { type: 'boolean' },
  },
  optionHelp: {
    what: 'only this; without it all four, into a folder',
    out: 'the file, or a folder for `<what>.parquet`; a name that ends with a slash is a folder, which is made',
    since: 'only history and daily prices from this day on (YYYY-MM-DD, UTC)',
    replace: 'overwrite files that exist; each is whole, the new one or the one before, at every moment',
  },
  choices: { what: EXPORTS },
  moreHelp: [
    '',
    'DATABASE_URL of a role with the rights of catalog_reader is enough. Files get their names once all of them are whole.',
  ],
  positionals: false,
  problemsOf: problemsIn(wantedOf),
  async run({ print, ...args }) {
    const wanted = wantedOf(args);
    const config = loadConfig(processSources.env, processSources.readFile, { need: 'database' });
    return await untilStopped('nothing was written', (signal) =>
      withMirror(
        config,
        async (sql, which) => {
          if (which !== null) process.stderr.write(`from ${which}:\n`);
          const hidden = await hiddenLine(sql, tablesOf(wanted.what === null ? EXPORTS : [wanted.what]));
          if (hidden !== null) process.stderr.write(`${hidden}\n`);
          for (const line of await exported(sql, wanted, signal)) print(line);
          return EXIT.ok;
        },
        { giveUp: signal, forReaders: true },
      ),
    );
  },
};

const isExport = (what: unknown): what is Export => (EXPORTS as readonly unknown[]).includes(what);

function wantedOf({ values: { what, out, since, replace }, given }: Arguments): Wanted {
  const problems: string[] = [];
  if (what !== undefined && !isExport(what)) problems.push(`--what: expected one of ${EXPORTS.join(', ')}`);
  if (out === '' || !given.has('out')) problems.push('--out: expected a file or a folder');
  if (since !== undefined && !isDay(since)) problems.push('--since: expected a date, as 2026-01-31');
  if (since !== undefined && isExport(what) && !hasSince(what))
    problems.push(`--since: ${what} are of now; it is for history and daily`);
  if (problems.length > 0) throw new UsageError(problems);
  return {
    what: isExport(what) ? what : null,
    out: String(out),
    since: typeof since === 'string' ? since : null,
    replace: replace === true,
  };
}

function isDay(text: unknown): boolean {
  if (typeof text !== 'string' || !DAY.test(text)) return false;
  const at = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text);
}

interface Wanted {
  readonly what: Export | null;
  readonly out: string;
  readonly since: string | null;
  readonly replace: boolean;
}

/** Maps each export to its file. Creates the folder if all are wanted, or if the name ends in a slash. */
async function filesOf({ what, out }: Wanted): Promise<[Export, string][]> {
  if (what === null || out.endsWith('/'))
    await mkdir(out, { recursive: true }).catch((error: unknown) => {
      throw new NotWritten(
        out,
        what === null
          ? 'without --what, --out is a folder'
          : 'a name that ends with a slash is one of a folder',
        error,
      );
    });
  const isFolder = await stat(out).then(
    (found) => found.isDirectory(),
    () => false,
  );
  const whole: readonly Export[] = what === null ? EXPORTS : [what];
  return whole.map((each) => [each, isFolder ? join(out, `${each}.parquet`) : out]);
}

/** A transaction that waits longer for others' locks is restarted, so that a signal can end the wait in between. */
const LOCKED_WITHIN_MS = 2000;

/** Writes all rows, from one snapshot taken after all tables are locked. Returns how many rows of each. */
async function writeAll(
  sql: Sql,
  pending: readonly [Export, PendingFile][],
  wanted: Wanted,
  signal: AbortSignal,
): Promise<number[]> {
  for (;;)
    try {
      return await sql.begin('isolation level repeatable read read only', async (tx) => {
        // Neither SET nor LOCK takes a snapshot.
        await tx.unsafe(`set local lock_timeout = ${LOCKED_WITHIN_MS}`);
        await lockExported(
          tx,
          pending.map(([what]) => what),
        );
        await tx`set local lock_timeout = 0`;
        // Between two batches it waits for the disk, however long that takes.
        await tx`set local idle_in_transaction_session_timeout = 0`;
        const counts: number[] = [];
        await cancelledBy(signal, sql, tx, async () => {
          for (const [what, file] of pending)
            counts.push(await writeOne(tx, what, file, wanted.since, signal));
        });
        return counts;
      });
    } catch (error) {
      if (!isLockNotAvailable(error)) throw error;
      signal.throwIfAborted();
    }
}

/**
 * Writes the files, all from one snapshot. Returns a line about each. If it rejects before all are complete, nothing is
 * left of them.
 */
async function exported(sql: Sql, wanted: Wanted, signal: AbortSignal): Promise<string[]> {
  const pending: [Export, PendingFile][] = [];
  try {
    for (const [what, path] of await filesOf(wanted))
      pending.push([what, await createPendingFile(path, wanted.replace)]);
    const rows = await writeAll(sql, pending, wanted, signal);
    const lines: string[] = [];
    for (const [i, [, file]] of pending.entries())
      lines.push(
        `${file.path}: ${numberOf(rows[i] ?? 0)} rows, ${numberOf(Math.ceil((await file.finish()) / 1000))} kB`,
      );
    for (const [, file] of pending) await file.commit();
    return lines;
  } finally {
    for (const [, file] of pending) await file.dispose();
  }
}

async function writeOne(
  tx: Tx,
  what: Export,
  file: PendingFile,
  since: string | null,
  signal: AbortSignal,
): Promise<number> {
  // Only this command loads it.
  const { writeParquet } = await import('./export-parquet.ts');
  const isWhole = since === null || !hasSince(what);
  const tell = progress(what, isWhole ? await estimateRows(tx, what) : null);
  return await writeParquet(
    file,
    exportColumns(what),
    readExport(tx, what, { since, batch: BATCH }),
    (rows) => {
      signal.throwIfAborted();
      tell(rows);
    },
  );
}

const numberOf = (value: number): string => count(Math.round(value));

/** Prints the progress on stderr, every five seconds. */
function progress(what: Export, expected: number | null): (rows: number) => void {
  const begun = systemClock.monotonic();
  let writtenAt = begun;
  return (rows) => {
    const now = systemClock.monotonic();
    if (now - writtenAt < LOG_EVERY_MS) return;
    writtenAt = now;
    const left =
      expected === null || expected <= rows ? null : ((now - begun) / 1000) * (expected / rows - 1);
    const of = expected === null ? '' : ` of about ${numberOf(Math.max(expected, rows))}`;
    process.stderr.write(
      `${what}: ${numberOf(rows)}${of} rows${left === null ? '' : `, ${formatAge(left)} left`}\n`,
    );
  };
}
