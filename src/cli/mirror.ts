import { join, relative, resolve } from 'node:path';
import { escapeIdentifier } from 'pg';
import type { MirrorConfig } from '../config/config.ts';
import { findEmbeddedPostgres, type FoundCluster, startEmbeddedPostgres } from '../embedded/postgres.ts';
import { EmbeddedError } from '../embedded/reports.ts';
import { systemClock } from '../lib/clock.ts';
import { Misconfigured } from '../lib/errors.ts';
import { connect, type Sql } from '../store/connection/db.ts';
import {
  isNameUnknown,
  isPrivilegeLacking,
  isTableMissing,
  sqlState,
} from '../store/connection/sql-errors.ts';
import { waitForDatabase } from '../store/connection/startup.ts';
import { readLostRows } from '../store/ledger/lost-rows.ts';
import { migrationState } from '../store/setup/journal.ts';
import { grantOf, lackingText, readOwnRights } from '../store/setup/privileges.ts';
import { namingHolder } from '../store/status/holders.ts';
import { NoMirror } from './errors.ts';

const PATIENCE_MS = 10_000;

/** Whose embedded Postgres a command may work on where DATABASE_URL is not set. */
const OWNERS = ['daemon', 'demo'] as const;
type Owner = (typeof OWNERS)[number];

/** Where the embedded Postgres of the daemon, or of the demo, has its files. */
export const dataDirOf = (config: Pick<MirrorConfig, 'database'>, owner: Owner): string =>
  owner === 'demo'
    ? join(config.database.dataDir, 'demo', 'postgres')
    : join(config.database.dataDir, 'postgres');

/** The mirror that a command works on. */
export interface FoundMirror {
  /** Null: it is not running, and is started for as long as the command takes. */
  readonly url: string | null;
  readonly dataDir: string;
  /** Which one it is, in words; null where DATABASE_URL names it. */
  readonly which: string | null;
}

type Candidate = { readonly owner: Owner; readonly dataDir: string; readonly found: FoundCluster };

/**
 * Which of the embedded ones is meant: one that runs rather than one that does not, then the daemon's rather than the
 * demo's. Null where there is none. Pure.
 */
export function chooseCluster(candidates: readonly Candidate[]): Candidate | null {
  const inState = (state: FoundCluster['state']) => candidates.find(({ found }) => found.state === state);
  return inState('running') ?? inState('stopped') ?? null;
}

/**
 * The mirror of a command beside the daemon: the configured one, else an embedded one in DATA_DIR. Creates nothing.
 *
 * @throws NoMirror where there is none; EmbeddedError where a folder cannot be read
 */
export async function findMirror(
  config: MirrorConfig,
  owners: readonly Owner[] = OWNERS,
): Promise<FoundMirror> {
  const configured = config.database.url?.read();
  if (configured !== undefined) return { url: configured, dataDir: '', which: null };
  const candidates: Candidate[] = [];
  for (const owner of owners) {
    const dataDir = dataDirOf(config, owner);
    candidates.push({ owner, dataDir, found: await findEmbeddedPostgres(dataDir) });
  }
  const chosen = chooseCluster(candidates);
  if (chosen === null) throw new NoMirror(config, owners);
  const { owner, dataDir, found } = chosen;
  const isRunning = found.state === 'running';
  return {
    url: isRunning ? found.url : null,
    dataDir,
    which: `the ${isRunning ? 'running' : 'stopped'} ${owner} in ${shortest(dataDir)}`,
  };
}

function shortest(path: string): string {
  const [whole, below] = [resolve(path), relative(process.cwd(), path)];
  return below.startsWith('..') || below.length > whole.length ? whole : below;
}

/**
 * Does work on the mirror that `findMirror` finds. `which` is what it says of it, for the first line of what is
 * printed. `giveUp` ends the wait for the database. `lasts`: the work has no end of its own, and so starts no
 * Postgres, which the daemon would find in use.
 */
export async function withMirror<T>(
  config: MirrorConfig,
  work: (sql: Sql, which: string | null, url: string) => Promise<T>,
  {
    giveUp,
    owners = OWNERS,
    lasts = false,
  }: {
    readonly giveUp?: AbortSignal;
    readonly owners?: readonly Owner[];
    readonly lasts?: boolean;
  } = {},
): Promise<T> {
  const { url, dataDir, which } = await findMirror(config, owners);
  const working = (at: string) => (sql: Sql) => work(sql, which, at);
  if (url !== null) return await withConnection(url, working(url), giveUp);
  if (lasts) throw new NotRunning(dataDir);
  await using embedded = await startEmbeddedPostgres({ dataDir }).catch((error: unknown) => {
    throw error instanceof EmbeddedError && error.kind === 'in-use' ? new Starting(error) : error;
  });
  return await withConnection(embedded.url, working(embedded.url), giveUp);
}

/** Whoever owns the embedded Postgres is not there, or not yet. */
class NotRunning extends Error {
  override readonly name = 'NotRunning';
  readonly kind = 'not-running';
  readonly hint =
    'start the daemon, `catalog-mirror run`, or wait until it has started; or use `follow --once`, or `status` ' +
    'without --watch, which start this Postgres for as long as they take';

  constructor(dataDir: string) {
    super(`the embedded Postgres in ${shortest(dataDir)} is not running`);
  }
}

/** The owner of an embedded Postgres is there, and its server is not. */
class Starting extends Error {
  override readonly name = 'Starting';
  readonly kind = 'starting';
  readonly hint = 'wait a moment, then try again';

  constructor(cause: EmbeddedError) {
    super('the embedded Postgres is being started or stopped', { cause });
  }
}

async function withConnection<T>(
  url: string,
  work: (sql: Sql) => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  const sql = connect(url, { max: 4 });
  try {
    await waitForDatabase(sql, systemClock, PATIENCE_MS, { signal });
    return await work(sql);
  } catch (error) {
    const named = await namingHolder(sql, error);
    if (named !== error) throw named;
    if (isPrivilegeLacking(sqlState(error))) await explainLacking(url, error);
    const lost = error instanceof RowsLost ? [] : await lostRows(url);
    // What stumbles over a row that is not there says nothing beside that.
    if (lost.length > 0) throw new RowsLost(lost, error instanceof TypeError ? undefined : error);
    if (isTableMissing(error) && !(await hasTables(url))) throw new NoTables(error);
    if (isNameUnknown(error)) await explainVersion(url, error);
    throw error;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** The database has no mirror, or not yet: nothing is broken. */
export class NoTables extends Misconfigured {
  override readonly name = 'NoTables';
  readonly kind = 'no-tables';

  constructor(cause: unknown) {
    super(
      'the mirror has no tables yet',
      'start the daemon, or run `catalog-mirror migrate`; or correct DATABASE_URL',
      cause,
    );
  }
}

/** The tables are those of an earlier version, by which a daemon of that version may be at work: nothing is broken. */
export class EarlierVersion extends Misconfigured {
  override readonly name = 'EarlierVersion';
  readonly kind = 'earlier-version';

  constructor(cause: unknown) {
    super(
      'the database is of an earlier version',
      'start the daemon of this version, or run `catalog-mirror migrate`; until then use the commands of that version',
      cause,
    );
  }
}

/** The tables are those of a later version: nothing is broken. */
export class LaterVersion extends Misconfigured {
  override readonly name = 'LaterVersion';
  readonly kind = 'later-version';

  constructor(cause: unknown) {
    super('the database is of a later version', 'use the commands of that version', cause);
  }
}

/** Throws where the tables are another version's; who may not read which migrations were applied learns nothing. */
async function explainVersion(url: string, cause: unknown): Promise<void> {
  const { pending, unknown } = await asking(url, migrationState, { pending: 0, unknown: 0 });
  if (unknown > 0) throw new LaterVersion(cause);
  if (pending > 0) throw new EarlierVersion(cause);
}

/** Postgres is a standby: the sessions of daemons are the primary's, so who works on the mirror is not known here. */
export class OnStandby extends Misconfigured {
  override readonly name = 'OnStandby';
  readonly kind = 'standby';

  constructor() {
    super(
      'this Postgres is a standby, where nobody sees whether a daemon is at work',
      'point DATABASE_URL at the primary; `show`, `sql`, `plan` and `export` read a standby, too',
    );
  }
}

/** Throws OnStandby on a standby: for whoever has found no daemon. */
export async function expectPrimary(sql: Sql): Promise<void> {
  const [{ standby }] = await sql<[{ standby: boolean }]>`select pg_is_in_recovery() as standby`;
  if (standby) throw new OnStandby();
}

/** The role of DATABASE_URL may not do what the command does: nothing is broken. */
export class NotAllowed extends Misconfigured {
  override readonly name = 'NotAllowed';
  readonly kind = 'not-allowed';

  constructor(cause: unknown) {
    super(
      'the role of DATABASE_URL may not do this',
      'use the DATABASE_URL of the daemon; catalog_reader is enough for show, sql (on the schema catalog), export, ' +
        'and follow without --name and --filter',
      cause,
    );
  }
}

/** The role of the mirror itself may not do what the command does, nor may the daemon then. */
class RightsLacking extends Error {
  override readonly name = 'RightsLacking';
  readonly kind = 'rights-lacking';
  readonly hint: string;

  constructor(text: string, hint: string, cause: unknown) {
    super(text, { cause });
    this.hint = hint;
  }
}

/**
 * Throws what is to be said where a privilege is lacking; returns where none is that belongs to the mirror, as where
 * somebody's policy or trigger has refused a row.
 */
async function explainLacking(url: string, cause: unknown): Promise<void> {
  const rights = await asking(url, readOwnRights, null);
  if (rights === null) return;
  const { role, owns, lacking } = rights;
  if (!owns) throw new NotAllowed(cause);
  const text = lackingText(lacking);
  if (text !== null) throw new RightsLacking(text, grantOf(lacking, escapeIdentifier(role)), cause);
}

/** Tables that the message names. */
const NAMED = 3;

/** Somebody has deleted rows without which nothing can be read. */
export class RowsLost extends Error {
  override readonly name = 'RowsLost';
  readonly kind = 'rows-lost';
  readonly hint =
    '`catalog-mirror migrate` makes them anew, or says what to do where the whole mirror is without rows';

  constructor(tables: readonly string[], cause?: unknown) {
    const more = tables.length > NAMED ? ` and ${tables.length - NAMED} more tables` : '';
    super(
      `rows that the mirror cannot do without are gone: ${tables.slice(0, NAMED).join(', ')}${more}`,
      cause === undefined ? {} : { cause },
    );
  }
}

const lostRows = (url: string) => asking<readonly string[]>(url, readLostRows, []);
const hasTables = (url: string) => ask(url, "to_regclass('catalog.skus') is not null");

const ask = (url: string, condition: string) =>
  asking(
    url,
    async (sql) =>
      (await sql.unsafe<{ holds: boolean }[]>(`select ${condition} as holds`))[0]?.holds !== false,
    true,
  );

/**
 * Reads something by a connection of its own: the work may have ended the other one. `otherwise`: what counts where it
 * cannot be asked any more, as no news beside the error at hand.
 */
async function asking<T>(url: string, read: (sql: Sql) => Promise<T>, otherwise: T): Promise<T> {
  const sql = connect(url, { max: 1 });
  try {
    return await read(sql);
  } catch {
    return otherwise;
  } finally {
    await sql.end({ timeout: 1 });
  }
}
