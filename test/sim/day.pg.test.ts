import { beforeEach, expect, test } from 'vitest';
import { declared, type EventName } from '../../src/declared/log-events.ts';
import { Day } from './day.ts';
import { useRig } from './rig.ts';

const rig = useRig(() => Promise.resolve());

beforeEach(() => rig.reset({ seed: 41, skus: 300, liveShare: 0.1 }));

/** Members of every line, and those that the test adds. */
const EVERY_LINE = ['level', 'time', 'pid', 'hostname', 'mirror', 'msg', 'event', 'at', 'next'];

/** Members and levels of lines that their event does not declare. */
function undeclared(day: Day): string[] {
  return [
    ...new Set(
      day.lines.flatMap((line) => {
        const { fields, levels } = declared(line.event as EventName);
        const odd = Object.keys(line).filter((name) => !EVERY_LINE.includes(name) && !fields.includes(name));
        const level = levels.includes(String(line['level']) as never) ? [] : [`at ${String(line['level'])}`];
        return [...odd, ...level].map((what) => `${line.event}: ${what}`);
      }),
    ),
  ];
}

/** Returns all faults of the day's lines from the nth on. If there are too many lines, counts them by kind. */
function wrongWith(day: Day, most: number, from = 0) {
  const lines = day.lines.length - from;
  return { undeclared: undeclared(day), tooMany: lines < most ? [] : [['all', lines], ...day.tally(from)] };
}
const NOTHING = { undeclared: [], tooMany: [] };

test('a quiet day from an empty mirror on logs under 2,000 info lines, and warnings only about the market', async () => {
  const day = new Day(rig, 'info');
  await day.pass(24);
  expect(wrongWith(day, 2000)).toEqual(NOTHING);
  const tally = day.tally();
  const warnings = tally.filter(([what]) => !what.startsWith('info') && what !== 'warn size-type.changed');
  expect(warnings).toEqual([]);
  const events = new Map(tally);
  // Proof of a full day: a manifest, deltas, an hourly catalog check, a completed fill, and calls all day long.
  expect(events.get('info manifest.done')).toBe(1);
  expect(events.get('info delta.applied')).toBeGreaterThan(200);
  expect(events.get('info catalog-check.done')).toBeGreaterThanOrEqual(23);
  expect(events.get('info reprice.filled')).toBe(1);
  expect(events.get('info reprice.progress')).toBeGreaterThan(100);
}, 400_000);

const FORBIDDEN = { status: 403, body: { message: 'Forbidden' } };
const full = Object.assign(new Error('could not extend file: No space left on device'), { code: '53100' });
const gone = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
const WRITES = /^\s*(?:insert|update|delete|with)|^begin$/;

interface BadDay {
  readonly name: string;
  readonly begin: (day: Day) => void;
  readonly first: object;
  /** Events that the last line may have. */
  readonly last: readonly string[];
  readonly recovered: string;
}

const BAD_DAYS: readonly BadDay[] = [
  {
    name: 'a wrong secret',
    begin: ({ weather }) => (weather.answer = () => FORBIDDEN),
    first: { event: 'pace.silenced', outcome: 'throttled-or-forbidden', backoffSeconds: 60, times: 1 },
    last: ['pace.silenced'],
    recovered: 'pace.resumed',
  },
  {
    name: 'a partner that is down',
    begin: ({ weather }) => (weather.answer = () => ({ failed: 'network' })),
    first: { because: 'network', times: 1, problem: expect.stringContaining('network') as unknown },
    last: ['bulk.failed', 'delta.failed', 'catalog-check.failed'],
    recovered: 'bulk.recovered',
  },
  {
    name: 'a Postgres that takes no writes',
    begin: ({ weather }) => (weather.statement = (text) => (WRITES.test(text) ? full : null)),
    first: { event: 'store.paused', kind: 'disk-full', retryInMs: 1000, times: 1 },
    last: ['store.paused'],
    recovered: 'store.resumed',
  },
  {
    name: 'a Postgres that is away',
    begin: ({ weather }) => (weather.statement = () => gone),
    first: { event: 'store.lost', err: { code: 'ECONNREFUSED' }, times: 1 },
    last: ['store.lost'],
    recovered: 'store.back',
  },
];

test.each(BAD_DAYS)(
  'three hours of $name: few lines, the first names it, the last shows that it lasts, and one ends it',
  async ({ begin, first, last, recovered }) => {
    const day = new Day(rig, 'info');
    await day.pass(1);
    const before = day.lines.length;
    const good = { ...day.weather };
    begin(day);
    await day.pass(3);
    expect(wrongWith(day, 60, before)).toEqual(NOTHING);
    const alarms = day.lines.slice(before).filter(({ level }) => level === 'warn');
    expect(alarms[0]).toMatchObject({ ...first, next: expect.any(String) as unknown });
    const newest = day.lines.at(-1);
    expect(last).toContain(newest?.event);
    // If several events last, any of them may come last.
    const began = alarms.find(({ event }) => event === newest?.event);
    expect(newest).toMatchObject({ level: 'warn', since: began?.['since'] });
    expect(Date.parse(String(began?.['at']))).toBeLessThan(rig.time.at - 2 * 60 * 60_000);
    const over = day.lines.length;
    expect(Date.parse(String(newest?.['at']))).toBeGreaterThan(rig.time.at - 65 * 60_000);

    Object.assign(day.weather, good);
    await day.pass(1.5);
    const told = day.lines.slice(over).filter(({ event }) => event === recovered);
    expect(told).toHaveLength(1);
    expect(Number(told[0]?.['lastedSeconds'])).toBeGreaterThan(2 * 3600);
  },
  400_000,
);

test('six hours with one throttle in fifteen answers are logged as one error, at growing intervals', async () => {
  const day = new Day(rig, 'info');
  await day.pass(1);
  const before = day.lines.length;
  let nth = 0;
  day.weather.answer = () => ((nth += 1) % 15 === 0 ? FORBIDDEN : null);
  await day.pass(6);
  expect(wrongWith(day, 500, before)).toEqual(NOTHING);
  const tally = day.tally(before);
  // About 20 back-offs, each of which is a line at debug.
  expect(new Map(tally).get('warn pace.silenced')).toBeLessThan(18);
  expect(tally.filter(([what]) => what.includes('delta.'))).toEqual([
    ['info delta.applied', expect.any(Number)],
  ]);
}, 400_000);

test('at debug each request has a line of its own, with its SKUs, outcome, duration and wait', async () => {
  const day = new Day(rig, 'debug');
  let sent = 0;
  day.weather.answer = ({ route }) => {
    if (route !== 'manifest-file') sent += 1;
    return null;
  };
  await day.pass(1);
  expect(undeclared(day)).toEqual([]);
  const requests = day.lines.filter(({ event }) => event === 'partner.request');
  expect(requests).toHaveLength(sent);
  for (const line of requests) {
    expect(line).toMatchObject({ outcome: 'ok', httpStatus: 200, durationMs: expect.any(Number) as unknown });
    expect(Number(line['waitedMs'])).toBeGreaterThanOrEqual(0);
    expect(line['skus'] !== undefined).toBe(line['route'] === 'bulk');
  }
});
