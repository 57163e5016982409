import { type ArmedFault, type Fault, type Route, ROUTE_NAMES } from '../faults.ts';
import { lineOf, type RequestRecord } from '../requests.ts';
import {
  choice,
  type ControlHandler,
  ControlProblem,
  delay as delayKind,
  done,
  flag,
  type Kind,
  mapOf,
  newest,
  readMembers,
  text,
  whole,
  written,
} from './call.ts';

/** An object is sent as JSON, a string as it is. */
const body: Kind<object | string> = {
  must: 'must be an object or a string',
  read: (value) =>
    typeof value === 'string' || (typeof value === 'object' && value !== null) ? value : undefined,
};

/** POST /sandbox/faults: determines what goes wrong with the next requests. */
export const armFault: ControlHandler = ({ state }, call) => {
  const asked = readMembers(call.body, {
    route: choice<Route | '*'>('*', ...ROUTE_NAMES, 'unknown'),
    after: whole(0, 1_000_000),
    times: whole(1, 1_000_000),
    status: whole(200, 599),
    body,
    headers: mapOf(text, '{"Retry-After": "5"}'),
    delay: delayKind,
    reset: flag,
    hang: flag,
    lost: choice('reset', 'hang'),
    truncate_at: whole(0, 100_000_000),
    clean: flag,
  });
  const { route = '*', delay, truncate_at: truncateAt, reset, hang, clean, ...same } = asked;
  const fault: Fault = {
    route,
    ...same,
    ...(delay === undefined ? {} : { delayMs: delay }),
    ...(truncateAt === undefined ? {} : { truncateAt }),
    ...(reset === true ? { reset } : {}),
    ...(hang === true ? { hang } : {}),
    ...(clean === true ? { clean } : {}),
  };
  checkFault(fault);
  return done(shown(state.faults.arm(fault)), 201);
};

const INSTEAD = ['status', 'body', 'reset', 'hang', 'lost'] as const;

/** Throws if a fault would do nothing, or two things that exclude each other. */
function checkFault(fault: Fault): void {
  const ways = INSTEAD.filter((name) => fault[name] !== undefined);
  const isAnswer = ways.every((name) => name === 'status' || name === 'body');
  if (ways.length > 1 && !isAnswer) throw new ControlProblem(400, `${ways.join(' and ')} exclude each other`);
  const bends = [fault.delayMs, fault.headers, fault.truncateAt].some((value) => value !== undefined);
  if (ways.length === 0 && !bends)
    throw new ControlProblem(
      400,
      'send what is to go wrong: status, body, headers, delay, reset, hang, lost or truncate_at',
    );
  const forbidden = Object.entries(fault.headers ?? {}).find(([name, value]) => !isHeader(name, value));
  if (forbidden !== undefined)
    throw new ControlProblem(400, `headers: ${forbidden[0]} is no header that can be sent`);
}

function isHeader(name: string, value: string): boolean {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(name) && /^[\t\x20-\x7e]*$/.test(value);
}

/** GET /sandbox/faults: lists what is armed, and how often each has hit. */
export const listFaults: ControlHandler = ({ state }) => done({ faults: [...state.faults].map(shown) });

/** DELETE /sandbox/faults. */
export const clearFaults: ControlHandler = ({ state }) => {
  state.faults.clear();
  return done({ faults: [] });
};

/** DELETE /sandbox/faults/{id}. */
export const disarmFault: ControlHandler = ({ state }, { params }) => {
  const id = params['id'] ?? '';
  if (!state.faults.disarm(Number(id)))
    throw new ControlProblem(404, `no fault ${id}: GET /sandbox/faults lists them`);
  return done({ faults: [...state.faults].map(shown) });
};

const SHOWN = ['route', 'status', 'body', 'headers', 'reset', 'hang', 'lost', 'clean'] as const;

function shown({ id, fault, hits }: Readonly<ArmedFault>): object {
  const { delayMs, truncateAt, times = 1, after = 0 } = fault;
  const members = SHOWN.filter((name) => fault[name] !== undefined).map((name) => [name, fault[name]]);
  return {
    id,
    ...Object.fromEntries(members),
    after,
    times: Number.isFinite(times) ? times : null,
    ...(delayMs === undefined ? {} : { delay: `${delayMs}ms` }),
    ...(truncateAt === undefined ? {} : { truncate_at: truncateAt }),
    hits,
  };
}

/** GET /sandbox/requests: lists the last requests of clients, newest first; `?route=` selects one route. */
export const listRequests: ControlHandler = ({ state }, { query }) => {
  const route = query.get('route');
  const records = state.log.ofClients().filter((record) => route === null || record.route === route);
  const { total, rows } = newest(records, query);
  return done({ total, requests: rows.map(shownRequest) });
};

function shownRequest(record: RequestRecord): object {
  const {
    at,
    route,
    method,
    path,
    query,
    status,
    code,
    fault,
    apiKey,
    skus,
    liveComputed,
    body: sent,
  } = record;
  return {
    at: written(at),
    method,
    path,
    query,
    route,
    status: status === 0 ? null : status,
    code,
    fault,
    counted: apiKey,
    skus,
    live_computed: liveComputed,
    body: sent,
    line: lineOf(record),
  };
}

/** DELETE /sandbox/requests. */
export const clearRequests: ControlHandler = ({ state }) => {
  state.log.clear();
  return done({ total: 0, requests: [] });
};
