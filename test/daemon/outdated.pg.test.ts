import { expect, onTestFinished, test } from 'vitest';
import { watchVersion } from '../../src/daemon/watches.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { newestMigration } from '../../src/store/setup/journal.ts';
import type { Log } from '../../src/telemetry/log/logger.ts';
import { useStore } from '../store/support.ts';

const store = useStore();

test('a daemon notices within a minute that a later version has migrated the database, and logs it once', async () => {
  const { sql } = store;
  const newest = await newestMigration();
  const lines: unknown[] = [];
  let minutes = 0;
  const clock = {
    async sleep(ms: number) {
      minutes += ms / 60_000;
      if (minutes > 10) throw new Error('not learned within minutes');
      if (minutes === 3)
        await sql`insert into catalog_internal.migrations (hash, created_at) values ('later', ${newest + 1})`;
    },
  } as unknown as Clock;
  onTestFinished(async () => void (await sql`delete from catalog_internal.migrations where hash = 'later'`));
  const log = { fatal: (line: unknown) => lines.push(line) } as unknown as Log;
  await watchVersion({ log, sync: { clock, sql } }, () => {});
  expect(minutes).toBe(3);
  expect(lines).toEqual([{ event: 'app.outdated' }]);
});
