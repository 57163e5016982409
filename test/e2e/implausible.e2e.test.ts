import { expect, test } from 'vitest';
import type { Sql } from '../../src/store/connection/db.ts';
import { logged, metric } from '../contract/harness.ts';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { runProgram } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';

/**
 * Creates a daemon whose partner has been right so far, and SKUs with at least two prices, whose moves deltas
 * report.
 */
async function mirrored(skus: number, seed: number) {
  const stack = await createStack({ sandbox: { skus, seed, noopShare: 0 } });
  const app = await stack.start();
  await stack.caughtUp();
  const rows = [...stack.sandbox.world.truth().values()].filter(
    ({ priceSource, sizeMap }) => priceSource === 'snapshot' && Object.keys(sizeMap).length >= 2,
  );
  return { stack, app, rows };
}

/** Multiplies the partner's prices of these SKUs, and waits until the mirror has them. */
async function multiply(stack: Stack, skus: Iterable<string>, factor: number): Promise<void> {
  const { world } = stack.sandbox;
  const truth = world.truth();
  for (const sku of skus)
    for (const [size, price] of Object.entries(truth.get(sku)?.sizeMap ?? {}))
      if (price !== null) world.setPrice(sku, size, Math.round(price * factor));
  world.buildSnapshot();
  await stack.caughtUp();
}

/** Waits for the only line of this event, which is written after its subject is in Postgres. */
async function untilLogged(stack: Stack, event: string, line: object): Promise<void> {
  await eventually(() => expect(logged(stack, event)).toMatchObject([line]), { what: event });
}

async function actionable(sql: Sql, sku: string): Promise<{ doubt: string | null; actionable: boolean }> {
  const [row] = await sql<[{ doubt: string | null; actionable: boolean }]>`
    select doubt, actionable from catalog.sku_trust where sku = ${sku}`;
  return row;
}

test('a price with an extra digit is mirrored, reported, explained, and actionable once the seller accepts it', async () => {
  const { stack, app, rows } = await mirrored(60, 1901);
  await using _ = stack;
  const { sql, env } = stack;
  const [wrong, right] = rows.map(({ sku }) => sku);
  if (wrong === undefined || right === undefined) throw new Error('too few SKUs');
  expect(await actionable(sql, wrong)).toEqual({ doubt: null, actionable: true });
  await multiply(stack, [wrong], 10);

  // It mirrors what the partner says, but is not actionable.
  await expectMirrorIsTrue(sql, stack.sandbox.world);
  expect(await actionable(sql, wrong)).toEqual({ doubt: 'implausible', actionable: false });
  expect(await actionable(sql, right)).toEqual({ doubt: null, actionable: true });
  await untilLogged(stack, 'prices.implausible', { skus: [wrong], oddities: ['jump'] });
  expect(await metric(app, 'doubted_skus', 'doubt="implausible"')).toBe(1);
  const shown = await runProgram(['show', wrong], env);
  expect(shown.stdout).toContain('doubt "implausible"');
  expect(shown.stdout).toMatch(/before: \S+: \d/);

  for (const args of [['--manifest'], ['--all'], ['--metadata'], ['--manifest', '--accept-shrink']]) {
    const refused = await runProgram(['refresh', '--accept', ...args], env);
    expect(refused).toMatchObject({ code: 78, stdout: '' });
    expect(refused.stderr).toContain('--accept: expected no other option with it');
  }
  expect(await actionable(sql, wrong)).toMatchObject({ doubt: 'implausible' });
  expect((await runProgram(['refresh', '--accept', wrong, right], env)).stdout).toBe(
    '1 SKU is no longer doubted',
  );
  expect(await actionable(sql, wrong)).toEqual({ doubt: null, actionable: true });
  expect(await metric(app, 'doubted_skus', 'doubt="implausible"')).toBe(0);
});

test('a partner that sends cents for half of its catalog is reported at once, and no moved price is actionable', async () => {
  const { stack, rows } = await mirrored(700, 1902);
  await using _ = stack;
  const { sql, env } = stack;
  const skus = rows.slice(0, 300).map(({ sku }) => sku);
  await multiply(stack, skus, 100);
  await expectMirrorIsTrue(sql, stack.sandbox.world);
  const [acted] = await sql<[{ n: number }]>`
    select count(*)::int as n from catalog.current_prices where actionable and sku = any(${skus})`;
  expect(acted.n).toBe(0);
  await untilLogged(stack, 'mass-move.began', { kind: 'factor' });
  const screen = await runProgram(['status'], env);
  expect(screen.stdout).toContain('prices have moved implausibly in masses');
  expect(screen.stdout).toContain('refresh --accept');

  // Of the other SKUs, the next to move is doubted, however small the move; those that do not move are not.
  const [little, still] = rows.slice(300).map(({ sku }) => sku);
  if (little === undefined || still === undefined) throw new Error('too few SKUs');
  await multiply(stack, [little], 1.01);
  expect(await actionable(sql, little)).toEqual({ doubt: 'mass-move', actionable: false });
  expect(await actionable(sql, still)).toEqual({ doubt: null, actionable: true });

  // Prices that are back at their old values are no longer doubted, without anybody's help.
  await multiply(stack, skus, 1 / 100);
  const [doubted] = await sql<[{ n: number }]>`
    select count(*)::int as n from catalog.sku_trust where doubt is not null and sku = any(${skus})`;
  expect(doubted.n).toBe(0);
  expect((await runProgram(['refresh', '--accept'], env)).stdout).toBe('1 SKU is no longer doubted');
  expect(await actionable(sql, little)).toEqual({ doubt: null, actionable: true });
  expect((await runProgram(['status'], env)).stdout).not.toContain('implausibly');
});
