import { openDatabase } from '../daemon/database.ts';
import { loadConfig, processSources } from '../config/config.ts';
import { systemClock } from '../lib/clock.ts';
import { prepareTables } from '../queues/postgres-queues.ts';
import { connect, waitForDatabase } from '../store/db.ts';
import { migrateDatabase } from '../store/migrations.ts';
import { createLogger } from '../telemetry/log/logger.ts';
import { type Command, EXIT } from './command.ts';

const PATIENCE_MS = 30_000;

export const migrate: Command = {
  summary: 'apply pending migrations and exit',
  usage: 'migrate',
  examples: [['catalog-mirror migrate', 'before starting the daemons of a new version']],
  exits: ['ok', 'failed', 'usage'],
  options: {},
  optionHelp: {},
  positionals: false,
  async run({ print }) {
    const config = loadConfig(processSources.env, processSources.readFile, { need: 'database' });
    const log = createLogger({ level: config.log.level, secrets: config.secrets });
    const database = await openDatabase(config, log);
    try {
      const sql = connect(database.url, { max: 1 });
      await waitForDatabase(sql, systemClock, PATIENCE_MS);
      await sql.end({ timeout: 5 });
      await migrateDatabase(database.url);
      if (config.queues.redisUrl === null) await prepareTables(database.url);
      print('migrations applied');
      return EXIT.ok;
    } finally {
      await database.close();
    }
  },
};
