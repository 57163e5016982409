import type { Plan } from './draw.ts';

type Cause = (plan: Plan) => boolean;
const has =
  (...kinds: string[]): Cause =>
  (plan) =>
    plan.faults.some(({ kind }) => kinds.includes(kind));
const on =
  (...routes: string[]): Cause =>
  (plan) =>
    plan.faults.some(({ route }) => route === 'all' || routes.includes(route));
const event =
  (...whats: string[]): Cause =>
  (plan) =>
    plan.events.some(({ what }) => whats.includes(what));
const any =
  (...causes: Cause[]): Cause =>
  (plan) =>
    causes.some((cause) => cause(plan));
const always: Cause = () => true;

/** Whether the chain of deltas may break. */
const breaks: Cause = any(
  has('expired', 'too-large'),
  event('forgetful-deploy'),
  ({ partner }) => partner.keptBuilds < 10 || partner.changesAtMost < 100,
);

/** Decides by a reason's code whether the plan contains a cause for it. */
export const MAY_SAY: Readonly<Record<string, Cause>> = {
  'no-baseline': always,
  // A busy machine alone may cause these.
  'postgres-unavailable': always,
  'queues-silent': always,
  'queues-unavailable': always,
  locked: always,
  'slow-statement': always,
  filling: always,
  refused: any(has('forbidden', 'authorizer-500'), event('rotation')),
  'own-credential': event('rotation'),
  'calls-failing': on('bulk'),
  'skus-failing': any(
    has('some-errors', 'live-errors', 'short-list', 'cut', 'garbage'),
    (plan) => plan.market.neverShare > 0,
  ),
  'delta-failing': any(on('delta'), breaks),
  'manifest-failing': any(on('manifest', 'file'), (plan) => plan.partner.urlLifeMs < 10_000),
  'chain-broken': breaks,
  'catalog-stale': any(
    has('stale', 'none'),
    on('manifest', 'delta'),
    event('forgetful-deploy'),
    (plan) => plan.partner.omitted > 0,
  ),
  'catalog-differs': (plan) => plan.partner.omitted > 0,
  incident: event('incident'),
  'live-outage': has('live-errors', 'hang', 'some-errors'),
  'live-deferred': has('defers'),
  'mass-move': any(has('unknown-wave'), (plan) => plan.market.withdrawn > 0),
  'prices-lag': has('kept'),
  stalled: on('bulk'),
};
