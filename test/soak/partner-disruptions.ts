import type { Sandbox } from '../../src/sandbox/index.ts';
import type { Json } from '../../src/sandbox/wire.ts';
import type { Disruption } from './disruptions.ts';

type Route = 'bulk' | 'delta' | 'manifest' | 'file' | '*';

/** Returns a SKU that is listed and priced. */
function someSku({ world }: Sandbox, random: () => number): string {
  const listed = [...world.truth().values()].filter(({ listed, answer }) => listed && answer === 'record');
  return listed[Math.floor(random() * listed.length)]?.sku ?? '';
}

const fault = (
  name: string,
  fault: Omit<Parameters<Sandbox['faults']['add']>[0], 'times' | 'route'> & { readonly route: Route },
  most = 4,
): Disruption => ({
  name,
  begin: ({ sandbox, random }) =>
    void sandbox.faults.add({ ...fault, times: 1 + Math.floor(random() * most) }),
});

/** Returns a disruption that lasts until `end`. */
const spell = (
  name: string,
  seconds: number,
  begin: (sandbox: Sandbox) => void,
  end: (sandbox: Sandbox) => void,
): Disruption => ({
  name,
  seconds,
  begin: ({ sandbox }) => begin(sandbox),
  end: ({ sandbox }) => end(sandbox),
});

const list = (json: Json, name: string, value: unknown): object => ({ ...(json as object), [name]: value });

/** What the partner and the network may do without contradicting the partner's documentation. */
export const PARTNER_DISRUPTIONS: readonly Disruption[] = [
  fault(
    '500 of the price route',
    { route: 'bulk', status: 500, body: { errorMessage: 'fault', code: '9999' } },
    8,
  ),
  fault('502 of everything', { route: '*', status: 502, body: '<html>' }, 10),
  fault('connections reset', { route: '*', reset: true }, 10),
  fault('answers that never come', { route: 'bulk', hang: true }),
  fault('slow answers', { route: 'bulk', delayMs: 3000 }, 20),
  fault('bodies cut short', { route: 'bulk', truncateAt: 200 }),
  fault('bodies that are no JSON', { route: 'bulk', body: 'oops', status: 200 }),
  fault('the authorizer is down', { route: '*', status: 500, body: { message: null } }, 2),
  fault('the delta fails', { route: 'delta', status: 500, body: { errorMessage: 'fault', code: '9999' } }),
  fault(
    'the delta is too large',
    { route: 'delta', status: 400, body: { errorMessage: 'too large', code: '0013' } },
    1,
  ),
  fault('the delta has null for an empty list', {
    route: 'delta',
    mutate: (json) =>
      list(
        json,
        'removed',
        (json as { removed?: unknown[] }).removed?.length === 0
          ? null
          : (json as { removed?: unknown[] }).removed,
      ),
  }),
  fault(
    'the catalog says 0012',
    { route: 'delta', status: 503, body: { errorMessage: 'none', code: '0012' } },
    2,
  ),
  fault('manifest files cut short', { route: 'file', truncateAt: 5000, clean: true }, 2),
  fault('presigned URLs that have expired', { route: 'file', status: 403, body: '<Error/>' }, 2),
  fault(
    'the bulk answer says that it was asked for nothing',
    {
      route: 'bulk',
      status: 200,
      body: { requested: 0, deduped: 0, results: {}, not_found: [], deferred: [], errors: [] },
    },
    1,
  ),
  {
    name: 'the chain breaks',
    begin: ({ sandbox }) => sandbox.world.breakChain(),
  },
  {
    name: 'a SKU makes each call fail that names it',
    seconds: 40,
    begin({ sandbox, random, remember }) {
      const sku = someSku(sandbox, random);
      sandbox.world.setRefused(sku, true);
      remember(sku);
    },
    end: ({ sandbox, remembered }) => {
      for (const sku of remembered()) sandbox.world.setRefused(sku, false);
    },
  },
  {
    name: 'a withdrawal, a removal, a correction of size_type',
    begin({ sandbox, random }) {
      sandbox.world.withdraw(someSku(sandbox, random));
      sandbox.world.remove(someSku(sandbox, random));
      sandbox.world.correctSizeType(someSku(sandbox, random), random() < 0.5 ? 'US' : 'UK');
    },
  },
  spell(
    'an incident: everything is live',
    30,
    ({ world }) => world.setIncident(true),
    ({ world }) => world.setIncident(false),
  ),
  spell(
    'the builder stops',
    30,
    ({ world }) => world.stopBuilder(),
    ({ world }) => world.startBuilder(),
  ),
];
