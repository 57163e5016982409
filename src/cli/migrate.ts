import { loadConfig, type MirrorConfig, processSources } from '../config/config.ts';
import { type Database, openDatabase } from '../daemon/database.ts';
import { systemClock } from '../lib/clock.ts';
import { prepareTables } from '../queues/postgres-queues.ts';
import { connect, type DatabaseUrl, type Sql } from '../store/connection/db.ts';
import { waitForDatabase } from '../store/connection/startup.ts';
import { restoreLostRows } from '../store/ledger/lost-rows.ts';
import { addressOf, adoptAccount } from '../store/setup/account.ts';
import { readMigrating } from '../store/setup/migrating.ts';
import { type Migrated, migrateDatabase } from '../store/setup/migrations.ts';
import { type LockHolder, tellingOfLocks } from '../store/status/holders.ts';
import type { Log } from '../telemetry/log/logger.ts';
import { type Command, EXIT } from './command.ts';
import { saidBy, withoutSecrets } from './errors.ts';
import { explainedStart } from './explained.ts';
import { openLog } from './log.ts';
import { migrationProgress } from './migrate-progress.ts';
import { findMirror } from './mirror.ts';
import type { Printer } from './terminal.ts';

const PATIENCE_MS = 30_000;

export const migrate: Command = {
  summary: 'apply pending migrations and exit',
  usage: 'migrate [--adopt-account]',
  examples: [
    ['catalog-mirror migrate', 'before starting the daemons of a new version, and after restoring a backup'],
    ['catalog-mirror migrate --adopt-account', 'mirror another partner or account in this database'],
  ],
  exits: ['ok', 'failed', 'usage'],
  options: { 'adopt-account': { type: 'boolean' } },
  optionHelp: {
    'adopt-account':
      'make the mirror that of PARTNER_BASE_URL and PARTNER_API_KEY: a new baseline, and all prices requested anew',
  },
  positionals: false,
  async run({ values, print }) {
    const { env, readFile } = processSources;
    const adopting = values['adopt-account'] === true ? loadConfig(env, readFile).partner : null;
    const config = loadConfig(env, readFile, { need: 'database' });
    const log = openLog(config);
    const { database, which } = await openExisting(config, log);
    try {
      if (which !== null) print(`in ${which}:`);
      const sql = connect(database.url, { max: 1 });
      await waitForDatabase(sql, systemClock, PATIENCE_MS, {
        onWait: (reason) =>
          print(
            withoutSecrets(`waiting for Postgres${reason instanceof Error ? `: ${saidBy(reason)}` : ''}`),
          ),
      });
      const { rolesMissing, notGranted } = await applied(sql, database.url, config, print);
      print('migrations applied');
      const restored = await restoreLostRows(sql);
      if (restored.length > 0) print(`rows that somebody had deleted are made anew: ${restored.join(', ')}`);
      if (notGranted !== null)
        print(
          `Postgres refuses to grant what catalog_reader and catalog_watcher lack: ${saidBy(notGranted)}`,
        );
      if (rolesMissing.length > 0) print(missingRolesText(rolesMissing));
      if (adopting !== null) {
        await adoptAccount(sql, { baseUrl: adopting.baseUrl, apiKey: adopting.apiKey.read() });
        print(
          `account adopted: the mirror is that of ${addressOf(adopting.baseUrl)}; all prices are requested anew`,
        );
      }
      await sql.end({ timeout: 5 });
      return EXIT.ok;
    } catch (error) {
      throw await explainedStart(error, database.url());
    } finally {
      await database.close();
    }
  },
};

/** Applies what is pending, also to the tables of the queues, and reports the progress: it may take half an hour. */
async function applied(
  sql: Sql,
  url: DatabaseUrl,
  config: MirrorConfig,
  print: Printer['print'],
): Promise<Migrated> {
  const progress = migrationProgress(print, () => systemClock.monotonic());
  const tell = async (holders: readonly LockHolder[]) => progress.tick(holders, await readMigrating(sql));
  const work = async () => {
    const migrated = await migrateDatabase(url, { onPending: progress.pending, onStep: progress.step });
    progress.over();
    if (config.queues.redisUrl === null) await prepareTables(url);
    return migrated;
  };
  // If Postgres cannot be asked, that is not reported: the migration itself fails.
  return await tellingOfLocks(sql, (holders) => void tell(holders).catch(() => {}), work);
}

/**
 * Opens the configured database, or a daemon's embedded one. It creates none: whoever has forgotten DATABASE_URL would
 * see success, while the intended database is unchanged.
 */
async function openExisting(
  config: MirrorConfig,
  log: Log,
): Promise<{ readonly database: Database; readonly which: string | null }> {
  const { url, which } = await findMirror(config, ['daemon']);
  const isOthers = config.database.url === null && url !== null;
  const database = isOthers
    ? { url: () => url, close: () => Promise.resolve() }
    : await openDatabase(config, log);
  return { database, which };
}

/** Says what an administrator has to run if the mirror's role may not create roles. */
function missingRolesText(roles: readonly string[]): string {
  const create = roles.map((role) => `CREATE ROLE ${role};`).join(' ');
  return (
    'the roles that sellers are given are missing, and this role may not create them. As an administrator run ' +
    `${create} and then this command again`
  );
}
