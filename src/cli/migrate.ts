import { openDatabase } from '../daemon/database.ts';
import { loadConfig, processSources } from '../config/config.ts';
import { systemClock } from '../lib/clock.ts';
import { createQueueBackend } from '../queues/backend.ts';
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
      const backend = createQueueBackend({
        redisUrl: config.queues.redisUrl?.read() ?? null,
        databaseUrl: database.url,
        prefix: config.queues.prefix,
        onError: () => {},
      });
      await backend.prepare();
      await backend.close();
      print('migrations applied');
      return EXIT.ok;
    } finally {
      await database.close();
    }
  },
};
