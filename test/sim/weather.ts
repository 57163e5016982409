import type { Day } from './day.ts';
import { type Draw, pick } from './faults.ts';
import type { Raw } from './partner.ts';
import { QUIET } from './quiet.ts';
import type { Rig } from './rig.ts';

/** Starts a fault, and returns how it ends. */
export type Spell = (day: Day, rig: Rig, draw: Draw) => () => void;

const MINUTE = 60_000;
const FORBIDDEN: Raw = { status: 403, body: { message: 'Forbidden' } };
const FAILED: Raw = { status: 500, body: { errorMessage: 'Internal Server Error' } };
const FULL = Object.assign(new Error('could not extend file: No space left on device'), { code: '53100' });
const GONE = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
const READ_ONLY = Object.assign(new Error('cannot execute in a read-only transaction'), { code: '25006' });
const WRITES = /^\s*(?:insert|update|delete|with)|^begin$/;

const answering =
  (answer: Day['weather']['answer']): Spell =>
  ({ weather }) => {
    weather.answer = answer;
    return () => (weather.answer = () => null);
  };

const stating =
  (error: Error, which = /(?:)/): Spell =>
  ({ weather }) => {
    weather.statement = (text) => (which.test(text) ? error : null);
    return () => (weather.statement = () => null);
  };

const without =
  (...jobs: readonly string[]): Spell =>
  ({ weather }) => {
    weather.missing = (job) => jobs.length === 0 || jobs.includes(job);
    return () => (weather.missing = () => false);
  };

/** Faults that last. None of them is a lie. */
export const WEATHER: Readonly<Record<string, Spell>> = {
  'nothing but 403': answering(() => FORBIDDEN),
  'the partner is away': answering(() => ({ failed: 'network' })),
  'the partner hangs': answering(() => ({ failed: 'timeout' })),
  'bulk calls fail': answering(({ route }) => (route === 'bulk' ? FAILED : null)),
  'bulk answers are no JSON': answering(({ route }) =>
    route === 'bulk' ? { status: 200, body: '<html>hello</html>' } : null,
  ),
  'bulk answers read no SKU': answering(({ route }) =>
    route === 'bulk'
      ? { status: 200, body: { requested: 0, results: {}, not_found: [], deferred: [], errors: [] } }
      : null,
  ),
  'every SKU is in errors': answering(({ route, skus }) =>
    route === 'bulk'
      ? { status: 200, body: { results: {}, not_found: [], deferred: [], errors: skus } }
      : null,
  ),
  'every SKU is deferred': answering(({ route, skus }) =>
    route === 'bulk'
      ? { status: 200, body: { results: {}, not_found: [], deferred: skus, errors: [] } }
      : null,
  ),
  'the delta fails': answering(({ route }) => (route === 'delta' ? FAILED : null)),
  'the delta is refused': answering(({ route }) =>
    route === 'delta' ? { status: 400, body: { message: 'Refused' } } : null,
  ),
  'no snapshot is served': answering(({ route }) =>
    route === 'delta' || route === 'manifest'
      ? { status: 503, body: { message: 'stale', code: '0014' } }
      : null,
  ),
  'a broken chain, and no manifest': answering(({ route }) =>
    route === 'delta'
      ? { status: 400, body: { message: 'chain broken', code: '0010' } }
      : route === 'manifest'
        ? FAILED
        : null,
  ),
  'Postgres takes no writes': stating(FULL, WRITES),
  'Postgres is read-only': stating(READ_ONLY, WRITES),
  'Postgres is away': stating(GONE),
  'no job comes': without(),
  'no delta comes': without('delta'),
  'no call comes': without('reprice'),
  'the builder has stopped': (_, { partner: { world } }) => {
    world.stopBuilder();
    return () => world.startBuilder();
  },
  incident: (_, { partner: { world } }) => {
    world.setIncident(true);
    return () => world.setIncident(false);
  },
};

/** Wrong clocks of Postgres, set right and set wrong between two minutes. In milliseconds ahead. */
export const CLOCKS: Readonly<Record<string, number>> = {
  'Postgres is ahead': 8 * 24 * 60 * MINUTE,
  'Postgres is behind': -60 * MINUTE,
  'Postgres is a little ahead': 10 * MINUTE,
};

/** Starts a drawn fault. Returns its name and how it ends. */
export async function begin(
  day: Day,
  rig: Rig,
  draw: Draw,
): Promise<{ name: string; end: () => Promise<void> }> {
  const name = pick([WEATHER, CLOCKS, QUIET].flatMap(Object.keys), draw);
  return { name, end: await beginNamed(day, rig, draw, name) };
}

export async function beginNamed(day: Day, rig: Rig, draw: Draw, name: string): Promise<() => Promise<void>> {
  const ahead = CLOCKS[name];
  if (ahead !== undefined) {
    await rig.time.setAhead(ahead);
    return () => rig.time.setAhead(0);
  }
  const end = (WEATHER[name] ?? QUIET[name])?.(day, rig, draw);
  return async () => end?.();
}
