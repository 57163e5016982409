import { loadConfig, type MirrorConfig, processSources } from '../config/config.ts';
import { type Database, openDatabase } from '../daemon/database.ts';
import { systemClock } from '../lib/clock.ts';
import { prepareTables } from '../queues/postgres-queues.ts';
import { connect } from '../store/connection/db.ts';
import { waitForDatabase } from '../store/connection/startup.ts';
import { restoreLostRows } from '../store/ledger/lost-rows.ts';
import { addressOf, adoptAccount } from '../store/setup/account.ts';
import { migrateDatabase } from '../store/setup/migrations.ts';
import { namingHolder } from '../store/status/holders.ts';
import type { Log } from '../telemetry/log/logger.ts';
import { type Command, EXIT } from './command.ts';
import { saidBy } from './errors.ts';
import { openLog } from './log.ts';
import { findMirror } from './mirror.ts';

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
      await waitForDatabase(sql, systemClock, PATIENCE_MS);
      const { rolesMissing, notGranted } = await migrateDatabase(database.url).catch(
        async (error: unknown) => {
          throw await namingHolder(sql, error);
        },
      );
      if (config.queues.redisUrl === null) await prepareTables(database.url);
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
    } finally {
      await database.close();
    }
  },
};

/**
 * The configured database, or the embedded one of a daemon. None is made: whoever has forgotten DATABASE_URL would
 * read of success, and the database that was meant would be as before.
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

/** What an administrator has to run where the mirror's role may not create roles. */
function missingRolesText(roles: readonly string[]): string {
  const create = roles.map((role) => `CREATE ROLE ${role};`).join(' ');
  return (
    'the roles that sellers are given are missing, and this role may not create them. As an administrator run ' +
    `${create} and then this command again`
  );
}
