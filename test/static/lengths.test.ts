import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const MAX_LINE = 140;
const MAX_COMMENT = 120;

/** Files with longer lines; to become none. */
const LONGER: readonly string[] = [
  'src/config/settings.ts',
  'src/daemon/health.ts',
  'src/pace/circuit-breaker.ts',
  'src/partner/errors.ts',
  'src/partner/manifest-lines.ts',
  'src/partner/secret-url.ts',
  'src/partner/transport.ts',
  'src/status/page-sections.ts',
  'src/store/answer/doubted.ts',
  'src/store/answer/lock.ts',
  'src/store/answer/mass-moves.ts',
  'src/store/answer/settle.ts',
  'src/store/answer/writes.ts',
  'src/store/call/bulk-call.ts',
  'src/store/catalog/baseline-sql.ts',
  'src/store/catalog/delta.ts',
  'src/store/catalog/manifest-hints.ts',
  'src/store/catalog/sync-state.ts',
  'src/store/clock.ts',
  'src/store/connection/pooler.ts',
  'src/store/history/changes.ts',
  'src/store/history/daily.ts',
  'src/store/history/feed.ts',
  'src/store/history/followers.ts',
  'src/store/ledger/due.ts',
  'src/store/ledger/tasks.ts',
  'src/store/live/backlog.ts',
  'src/store/live/learned-rates.ts',
  'src/store/live/lines.ts',
  'src/store/live/live.ts',
  'src/store/live/order.ts',
  'src/store/sellers/hint-sources.ts',
  'src/store/sellers/hints.ts',
  'src/store/sellers/promises.ts',
  'src/store/sellers/scope.ts',
  'src/store/sellers/watchlist.ts',
  'src/store/setup/account.ts',
  'src/store/setup/occupied.ts',
  'src/store/trust/beliefs.ts',
  'src/store/trust/calibration.ts',
  'src/store/trust/verification.ts',
  'src/sync/manifest-decision.ts',
];

const isTooLong = (line: string) => line.length > (/^\s*(?:\/\/|\/?\*)/.test(line) ? MAX_COMMENT : MAX_LINE);

test('no line of src has more than 140 columns, and no line of comment more than 120', () => {
  const paths = execFileSync('git', ['ls-files', 'src/*.ts'], { encoding: 'utf8' }).trim().split('\n');
  const long = paths.filter((path) => readFileSync(path, 'utf8').split('\n').some(isTooLong));
  expect(long).toEqual(LONGER);
});
