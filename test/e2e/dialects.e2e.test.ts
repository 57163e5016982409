import { describe, expect, test } from 'vitest';
import type { Ambiguity, SandboxOptions } from '../../src/sandbox/index.ts';
import { expectHistoryIsAChain, expectMirrorIsTrue } from '../support/oracle.ts';
import { createStack } from '../support/stack.ts';

/**
 * Four variants of what the partner does not document. Some of it is recognised by its shape, some must be
 * configured.
 */
const DIALECTS: readonly [string, SandboxOptions['dialect'], Record<string, string>][] = [
  [
    'objects everywhere, and fields nobody knows',
    { elements: 'object', changedElements: 'object', entries: 'object', extraFields: true },
    {},
  ],
  [
    'numeric strings, other names found by shape, gzip by Content-Encoding',
    {
      entries: 'string',
      counts: 'string',
      urlField: 'download_link',
      snapshotIdField: 'snapshotId',
      gzipFile: 'encoding',
    },
    {},
  ],
  [
    'names that have to be configured',
    {
      bulkBodyKey: 'items',
      elements: 'object',
      changedElements: 'object',
      skuField: 'code_of_sku',
      entries: 'object',
      priceField: 'thb',
      urlField: 'where',
      snapshotIdField: 'rev',
    },
    {
      PARTNER_BULK_BODY_KEY: 'items',
      PARTNER_SKU_FIELD: 'code_of_sku',
      PARTNER_PRICE_FIELDS: 'amount,thb',
      PARTNER_MANIFEST_URL_FIELD: 'where',
      PARTNER_SNAPSHOT_ID_FIELD: 'rev',
    },
  ],
  ['gzip inside gzip', { gzipFile: 'both', changedElements: 'object' }, {}],
];

describe.each(DIALECTS)('%s', (_name, dialect, env) => {
  test('a fill, deltas and re-prices match the truth', async () => {
    await using stack = await createStack({
      env,
      sandbox: { skus: 250, liveShare: 0.08, seed: 31, dialect },
    });
    const { world } = stack.sandbox;
    await stack.start();
    await stack.caughtUp();
    for (let round = 0; round < 2; round += 1) {
      world.step(40);
      world.buildSnapshot();
      await stack.caughtUp();
    }
    await stack.everythingDue();
    await stack.caughtUp();
    await expectMirrorIsTrue(stack.sql, world);
  });
});

test('with an ambiguous partner, omissions change nothing, and answers that hide changes are asked again', async () => {
  await using stack = await createStack({
    sandbox: { skus: 250, liveShare: 0.08, seed: 32, ambiguous: true },
    env: { DELTA_INTERVAL: '200ms', ERROR_INTERVAL: '200ms' },
  });
  const { sandbox, sql } = stack;
  await stack.start();
  await stack.caughtUp();
  for (let round = 0; round < 8; round += 1) {
    for (let n = 0; n < 5; n += 1) sandbox.step();
    sandbox.world.buildSnapshot();
    // A delta reports some of the snapshots, a manifest the others.
    if (round % 3 === 1) sandbox.world.breakChain();
    await stack.caughtUp();
    await stack.everythingDue();
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, sandbox.world);
  }
  await expectHistoryIsAChain(sql);
  // How often the catalog is asked depends on the machine; there are many records and lines in any case.
  const kinds: Ambiguity[] = [
    'withdrawn-without-size-type',
    'no-size-type',
    'no-product',
    'no-product-member',
    'price-zero',
    'build-began',
    'unreadable-field',
  ];
  expect(kinds.filter((kind) => sandbox.ambiguities?.drawn.has(kind) !== true)).toEqual([]);
});
