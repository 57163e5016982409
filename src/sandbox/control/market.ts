import { isSizeKey, noSizeKey } from '../own-skus.ts';
import type { AddOptions } from '../skus.ts';
import type { State } from '../state.ts';
import {
  choice,
  type ControlHandler,
  ControlProblem,
  type ControlTarget,
  done,
  duration,
  flag,
  mapOf,
  moment,
  orNull,
  readMembers,
  text,
  whole,
  written,
} from './call.ts';

/** GET /sandbox/state: shows seed, clock, catalog, budget, and how much there is of everything. */
export const showState: ControlHandler = (target) => done(stateOf(target));

function stateOf({ state, clock }: ControlTarget): object {
  const { settings, world, gate, orders, listings, intake, faults, log } = state;
  const byStatus: Record<string, number> = {};
  for (const { own, status } of orders) if (own) byStatus[status] = (byStatus[status] ?? 0) + 1;
  const own = [...listings].filter((listing) => listing.own);
  const servable = world.servable();
  return {
    seed: settings.seed,
    clock: clockOf(clock),
    catalog: {
      snapshot_id: world.newestSnapshot(),
      answers: typeof servable === 'string' ? servable : '0000',
      builder: world.builderRuns() ? 'running' : 'stopped',
    },
    budget: gate.budget(settings.now()),
    orders: byStatus,
    listings: own.length,
    intake: [...intake].length,
    faults: [...faults].length,
    requests: log.count('*'),
  };
}

/** POST /sandbox/reset: restores the initial state, with the same seed or another; the clock too. */
export const reset: ControlHandler = (target, { body }) => {
  target.reset(readMembers(body, { seed: whole(0, 2 ** 31) }).seed);
  return done(stateOf(target));
};

/** POST /sandbox/step: runs this many market intervals, and builds a snapshot after them if asked. */
export const step: ControlHandler = (target, { body }) => {
  const { steps = 1, snapshot = false } = readMembers(body, { steps: whole(1, 10_000), snapshot: flag });
  for (let nth = 0; nth < steps; nth += 1) target.step();
  if (snapshot) target.state.world.buildSnapshot();
  return done({ steps, snapshot_id: target.state.world.newestSnapshot() });
};

/** POST /sandbox/releases: moves most sizes of most SKUs of one line (brand and model) now. */
export const release: ControlHandler = ({ state }, { body }) => {
  const asked = readMembers(body, { brand: text, model: text });
  const released = state.world.release(asked);
  if (released === null) throw new ControlProblem(404, 'no SKU of that brand and model is on offer');
  const { brand, model, skus } = released;
  return done({ brand, model, skus: skus.length });
};

/** GET /sandbox/hints: lists SKUs that have probably moved; `?after=` is the `next` of the previous answer. */
export const listHints: ControlHandler = ({ state }, { query }) => {
  const after = query.get('after') ?? '0';
  if (!/^\d{1,15}$/.test(after)) throw new ControlProblem(400, 'after must be the next of an answer, or 0');
  const { hints, next, missed } = state.world.hints(Number(after));
  return done({ hints: hints.map(({ id, sku, at }) => ({ id, sku, at: written(at) })), next, missed });
};

/** POST /sandbox/clock: advances by a time or to a moment, through everything that happens on the way. */
export const moveClock: ControlHandler = ({ clock }, { body }) => {
  const { advance, to } = readMembers(body, { advance: duration, to: moment });
  if ((advance === undefined) === (to === undefined))
    throw new ControlProblem(400, 'send either {"advance": "90s"} or {"to": "2026-01-01T00:00:00Z"}');
  const ms = advance ?? (to ?? 0) - clock.now();
  if (ms < 0) throw new ControlProblem(400, `the clock goes ahead only, and it is ${written(clock.now())}`);
  if (!clock.advance(ms))
    throw new ControlProblem(
      400,
      'too many market steps and snapshots until then: go ahead by less, or start with a longer --market-interval',
    );
  return done(clockOf(clock));
};

function clockOf(clock: ControlTarget['clock']): object {
  return { now: written(clock.now()), stands: clock.stands };
}

/** POST /sandbox/snapshots: makes the present market the newest snapshot. */
export const buildSnapshot: ControlHandler = ({ state }) =>
  done({ snapshot_id: state.world.buildSnapshot() }, 201);

/** DELETE /sandbox/snapshots: the catalog answers 0012 until the next snapshot. */
export const dropSnapshots: ControlHandler = ({ state }) => {
  state.world.dropSnapshots();
  return done({ snapshot_id: null });
};

/** PUT /sandbox/catalog: determines what goes wrong with the catalog as a whole. */
export const setCatalog: ControlHandler = (target, { body }) => {
  const asked = readMembers(body, {
    builder: choice('running', 'stopped'),
    incident: flag,
    delta_max_changes: orNull(whole(0, 10_000_000)),
    break_chain: flag,
    revoke_urls: flag,
  });
  const { world, settings } = target.state;
  if (asked.builder === 'stopped') world.stopBuilder();
  if (asked.builder === 'running') world.startBuilder();
  if (asked.incident !== undefined) world.setIncident(asked.incident);
  if (asked.delta_max_changes !== undefined) settings.deltaMaxChanges = asked.delta_max_changes;
  if (asked.break_chain === true) world.breakChain();
  if (asked.revoke_urls === true) world.revokeUrls();
  return done(stateOf(target));
};

/** GET /sandbox/skus/{sku}: shows what is true of it now. */
export const showSku: ControlHandler = ({ state }, { params }) => done(truthOf(state, params['sku'] ?? ''));

const PRODUCT = mapOf(text, '{"name": "…"}');

/** PUT /sandbox/skus/{sku}: changes or adds it; the catalog shows it from the next snapshot on. */
export const setSku: ControlHandler = ({ state }, { params, body }) => {
  const sku = params['sku'] ?? '';
  const asked = readMembers(body, {
    sizes: mapOf(orNull(whole(0, 100_000_000)), '{"9": 4800, "10": null}'),
    price_source: choice('snapshot', 'live'),
    size_type: text,
    product: PRODUCT,
    failing: flag,
    refused: flag,
    removed: flag,
  });
  const wrong = Object.keys(asked.sizes ?? {}).find((size) => !isSizeKey(size));
  if (wrong !== undefined) throw new ControlProblem(400, noSizeKey(wrong));
  const { world } = state;
  const isNew = world.find(sku) === undefined;
  if (isNew) world.add(sku, looksOf(asked));
  else change(state, sku, asked);
  if (asked.failing !== undefined) world.setFailing(sku, asked.failing);
  if (asked.refused !== undefined) world.setRefused(sku, asked.refused);
  if (asked.removed === true) world.remove(sku);
  return done(truthOf(state, sku), isNew ? 201 : 200);
};

interface Asked {
  readonly sizes?: Record<string, number | null>;
  readonly price_source?: 'snapshot' | 'live';
  readonly size_type?: string;
  readonly product?: Record<string, string>;
  readonly removed?: boolean;
}

function looksOf({ sizes, price_source: source, size_type: sizeType, product }: Asked): AddOptions {
  return {
    live: source === 'live',
    ...(sizes === undefined ? {} : { sizes }),
    ...(sizeType === undefined ? {} : { sizeType }),
    ...(product === undefined ? {} : { product }),
  };
}

/** Changes a SKU. Afterwards it has only the named sizes. */
function change({ world }: State, sku: string, asked: Asked): void {
  if (asked.removed === false) world.relist(sku);
  if (asked.sizes !== undefined) {
    const before = Object.keys(world.find(sku)?.sizeMap ?? {});
    for (const size of before) if (!Object.hasOwn(asked.sizes, size)) world.dropSize(sku, size);
    for (const [size, price] of Object.entries(asked.sizes)) world.setPrice(sku, size, price);
  }
  if (asked.price_source !== undefined) world.cross(sku, asked.price_source);
  if (asked.size_type !== undefined) world.correctSizeType(sku, asked.size_type);
  if (asked.product !== undefined) world.setProduct(sku, asked.product);
}

function truthOf({ world }: State, sku: string): object {
  const found = world.find(sku);
  if (found === undefined) throw new ControlProblem(404, `no SKU ${sku}: PUT /sandbox/skus/${sku} adds it`);
  const { answer, listed, priceSource, hash, sizeMap, sizeType, product } = found;
  return {
    sku,
    answer,
    listed,
    price_source: priceSource,
    hash,
    sizes: sizeMap,
    size_type: sizeType,
    product,
  };
}
