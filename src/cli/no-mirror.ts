import { resolve } from 'node:path';
import type { MirrorConfig } from '../config/config.ts';

/** There is no mirror to speak of: a setting is missing, so exit code 78. Its message has one line a reason. */
export class NoMirror extends Error {
  override readonly name = 'NoMirror';
  readonly kind = 'no-mirror';
  readonly hint =
    'set DATABASE_URL; or run this where the daemon or the demo was started, or with the same DATA_DIR; or ' +
    'start one: `catalog-mirror run`, `catalog-mirror demo`';

  /** @param owners whose embedded Postgres would have done */
  constructor(
    { database, warnings }: Pick<MirrorConfig, 'database' | 'warnings'>,
    owners: readonly string[],
  ) {
    super(
      [
        `no mirror here: DATABASE_URL is not set, and ${resolve(database.dataDir)} has no embedded Postgres of a ${owners.join(' or a ')}`,
        ...warnings,
      ].join('\n'),
    );
  }
}
