import { expect, test } from 'vitest';
import { createTaskLines } from '../../src/telemetry/log/lines.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';
import { createLogThrottle } from '../../src/telemetry/log/throttle.ts';

test('a plan of live refreshes is logged only if scarcity, a backlog or an incident begins or ends', () => {
  const lines: string[] = [];
  const log = createLogger({
    level: 'info',
    secrets: () => [],
    destination: { write: (line: string) => lines.push(line) },
  });
  const report = createTaskLines(
    log,
    createLogThrottle({ now: () => 0, monotonic: () => 0, sleep: () => Promise.resolve() }),
  );
  const news = (counts: Record<string, number | string>) => {
    const before = lines.length;
    report({ task: 'live-plan', ms: 1, outcome: { kind: 'done', nextInMs: 60_000, counts } });
    return lines.length > before;
  };
  expect(news({ scarce: 0, backlog: 0 })).toBe(false);
  expect(news({ scarce: 1, backlog: 0 })).toBe(true);
  expect(news({ scarce: 1, backlog: 900 })).toBe(true);
  expect(news({ scarce: 1, backlog: 800 })).toBe(false);
  expect(news({ scarce: 1, backlog: 0 })).toBe(true);
  expect(news({ scarce: 1, backlog: 0, incident: 'live-count' })).toBe(true);
  expect(news({ scarce: 1, backlog: 0, incident: 'live-count' })).toBe(false);
});
