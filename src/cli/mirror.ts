import { join, relative, resolve } from 'node:path';
import type { MirrorConfig } from '../config/config.ts';
import { findEmbeddedPostgres, type FoundCluster, startEmbeddedPostgres } from '../embedded/postgres.ts';
import { EmbeddedError } from '../embedded/reports.ts';
import { systemClock } from '../lib/clock.ts';
import { Misconfigured } from '../lib/errors.ts';
import { connect, type Sql } from '../store/connection/db.ts';
import { waitForDatabase } from '../store/connection/startup.ts';
import { NoMirror } from './errors.ts';
import { explained, hiddenFromMirror } from './explained.ts';

const PATIENCE_MS = 10_000;

/** Whose embedded Postgres a command may use if DATABASE_URL is not set. */
const OWNERS = ['daemon', 'demo'] as const;
type Owner = (typeof OWNERS)[number];

/** Returns the folder of the embedded Postgres of the daemon, or of the demo. */
export const dataDirOf = (config: Pick<MirrorConfig, 'database'>, owner: Owner): string =>
  owner === 'demo'
    ? join(config.database.dataDir, 'demo', 'postgres')
    : join(config.database.dataDir, 'postgres');

/** The mirror that a command works on. */
export interface FoundMirror {
  /** Null: it is not running, and is started for as long as the command takes. */
  readonly url: string | null;
  readonly dataDir: string;
  /** Which one it is, in words; null if DATABASE_URL names it. */
  readonly which: string | null;
}

type Candidate = { readonly owner: Owner; readonly dataDir: string; readonly found: FoundCluster };

/**
 * Chooses among the embedded ones: a running one before a stopped one, then the daemon's before the demo's. Returns
 * null if there is none. Pure.
 */
export function chooseCluster(candidates: readonly Candidate[]): Candidate | null {
  const inState = (state: FoundCluster['state']) => candidates.find(({ found }) => found.state === state);
  return inState('running') ?? inState('stopped') ?? null;
}

/**
 * Finds a command's mirror beside the daemon: the configured one, else an embedded one in DATA_DIR. Creates nothing.
 *
 * @throws NoMirror if there is none; EmbeddedError if a folder cannot be read
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

interface Working {
  /** Ends the wait for the database. */
  readonly giveUp?: AbortSignal;
  readonly owners?: readonly Owner[];
  /** The work has no end of its own, so it starts no Postgres: the daemon would find it in use. */
  readonly lasts?: boolean;
  /** The work itself says what is wrong with the database. */
  readonly examines?: boolean;
  /** The statements come from the user of the command. */
  readonly ofUser?: boolean;
  /** The rights of catalog_reader are sufficient. */
  readonly forReaders?: boolean;
}

/** Works on the mirror that `findMirror` finds. `which` names it in words, for the first line of the output. */
export async function withMirror<T>(
  config: MirrorConfig,
  work: (sql: Sql, which: string | null, url: string) => Promise<T>,
  { owners = OWNERS, lasts = false, ...working }: Working = {},
): Promise<T> {
  const { url, dataDir, which } = await findMirror(config, owners);
  const workAt = (at: string) => (sql: Sql) => work(sql, which, at);
  if (url !== null) return await withConnection(url, workAt(url), working);
  if (lasts) throw new NotRunning(dataDir);
  await using embedded = await startEmbeddedPostgres({ dataDir }).catch((error: unknown) => {
    throw error instanceof EmbeddedError && error.kind === 'in-use' ? new Starting(error) : error;
  });
  return await withConnection(embedded.url, workAt(embedded.url), working);
}

/** The owner of the embedded Postgres is not running, or not yet. */
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

/** The owner of an embedded Postgres is running, but its server is not. */
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
  { giveUp: signal, ofUser = false, examines = false, forReaders = false }: Omit<Working, 'owners' | 'lasts'>,
): Promise<T> {
  const sql = connect(url, { max: 4 });
  try {
    await waitForDatabase(sql, systemClock, PATIENCE_MS, { signal });
    const hidden = examines || ofUser ? null : await hiddenFromMirror(sql);
    if (hidden !== null) throw hidden;
    return await work(sql);
  } catch (error) {
    throw await explained(sql, error, { url, ofUser, forReaders });
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** Postgres is a standby. Daemons have their sessions on the primary, so whether one is at work is not known here. */
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

/** Throws OnStandby on a standby. For callers that have found no daemon. */
export async function expectPrimary(sql: Sql): Promise<void> {
  const [{ standby }] = await sql<[{ standby: boolean }]>`select pg_is_in_recovery() as standby`;
  if (standby) throw new OnStandby();
}
