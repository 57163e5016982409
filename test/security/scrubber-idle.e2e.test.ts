import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { moveMarket } from '../support/market.ts';
import { FILLED, holds } from '../support/process.ts';
import { createStack } from '../support/stack.ts';

/*
 * The scrubber is the second line of defence: secrets are not passed to the log in the first place. If no answer
 * echoes a secret, it therefore finds nothing to redact, and no line contains the address of a file.
 */
test('a run through ordinary failures logs no line from which anything has to be redacted', async () => {
  await using stack = await createStack({
    sandbox: { skus: 200, liveShare: 0.05, seed: 95 },
    env: { LOG_LEVEL: 'trace', PARTNER_TIMEOUT: '1s', DELTA_INTERVAL: '500ms' },
  });
  const { faults, world } = stack.sandbox;
  const hits = [
    faults.add({ route: 'manifest', status: 500, body: { errorMessage: 'Internal Server Error' } }),
    faults.add({ route: 'file', status: 403 }),
    faults.add({ route: 'file', status: 500 }),
    faults.add({ route: 'file', reset: true }),
    faults.add({ route: 'file', truncateAt: 300 }),
    faults.add({ route: 'bulk', reset: true }),
    faults.add({ route: 'bulk', status: 502, body: '<html>' }),
    faults.add({ route: 'delta', status: 500 }),
  ];
  const { sql } = stack;
  await stack.start();
  await eventually(
    async () => {
      if (await holds(sql, `to_regclass('catalog_internal.tasks') is not null`))
        await sql`update catalog_internal.tasks set next_at = least(next_at, now()), failures = 0 where failures > 0`;
      return hits.every((count) => count() > 0);
    },
    { what: 'every error' },
  );
  await eventually(() => holds(sql, FILLED), { what: 'the fill' });
  moveMarket(world, 0);
  await eventually(() => stack.logs.some(({ event }) => event === 'delta.applied'), { what: 'a delta' });
  const events = new Set(stack.logs.map(({ event }) => event));
  expect([...events]).toEqual(
    expect.arrayContaining(['manifest.done', 'manifest.failed', 'delta.applied', 'partner.request']),
  );
  const suspect = stack.logs.filter((line) =>
    /redacted|\/files\/|X-Signature|\?/u.test(JSON.stringify(line)),
  );
  expect(suspect).toEqual([]);
});
