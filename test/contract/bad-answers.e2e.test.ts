import { describe, expect, test } from 'vitest';
import type { Fault } from '../../src/sandbox/index.ts';
import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { createStack } from '../support/stack.ts';
import { catalogState, contents, logged, metric, nextLog, readyz, runNow, taskOf, token } from './harness.ts';

type Bad = Omit<Fault, 'route'>;

/** More than a call may contain, but not more than is read of an answer. */
const MANY = Array.from({ length: 10_000 }, (_, i) => `FOREIGN-${i}`);
const HUGE = Array.from({ length: 100_000 }, (_, i) => `FOREIGN-${i}`);

function without(body: object, field: string): object {
  return Object.fromEntries(Object.entries(body).filter(([name]) => name !== field));
}

/** What no route of the partner ever answers. */
const NONSENSE: Readonly<Record<string, Bad>> = {
  'HTML with status 200': { body: '<html>We will be right back</html>' },
  'an empty body': { body: '' },
  'an empty object': { body: {} },
  'an array': { body: [{ sku: 'A' }] },
  'a JSON null': { body: 'null' },
  'an error code with status 200': { mutate: () => ({ message: 'SKU not found', code: '0009' }) },
  'a body cut in its gzip': { truncateAt: 30, clean: true },
};

const BAD_DELTAS: Readonly<Record<string, Bad>> = {
  ...NONSENSE,
  'no now_live': { mutate: (body) => without(body, 'now_live') },
  'changed that is no list': { mutate: (body) => ({ ...body, changed: 'A' }) },
  'a null among a hundred thousand SKUs': { mutate: (body) => ({ ...body, changed: [...HUGE, null] }) },
  'removed elements without a SKU': { mutate: (body) => ({ ...body, removed: [{ name: 'A' }] }) },
  'no to_snapshot': { mutate: (body) => without(body, 'to_snapshot') },
  'an empty to_snapshot': { mutate: (body) => ({ ...body, to_snapshot: '' }) },
  'a to_snapshot that is an object': { mutate: (body) => ({ ...body, to_snapshot: { id: 'cs-1' } }) },
};

const BAD_MANIFESTS: Readonly<Record<string, Bad>> = {
  ...NONSENSE,
  'no URL': { mutate: (body) => without(body, 'url') },
  'a URL that is none': { mutate: (body) => ({ ...body, url: 'see mail' }) },
  'no snapshot id': { mutate: (body) => without(body, 'snapshot_id') },
  // The field of the last manifest is missing, and two others disagree.
  'a snapshot id of two values, in other fields than before': {
    mutate: (body) => ({
      ...without(body, 'snapshot_id'),
      snapshot: { id: 'one' },
      new_snapshot_id: 'another',
    }),
  },
};

/**
 * Serves the bodies one after the other. Each must leave everything unchanged, and the next good answer must clear
 * the failures.
 */
async function bearAll(
  task: 'delta' | 'manifest',
  bad: Readonly<Record<string, Bad>>,
  seed: number,
): Promise<void> {
  await using stack = await createStack({ sandbox: { skus: 60, seed } });
  const { sandbox, sql } = stack;
  const app = await stack.start();
  await stack.caughtUp();
  sandbox.world.step(10);
  sandbox.world.buildSnapshot();
  const before = { contents: await contents(sql), token: await token(sql) };
  const downloads = sandbox.counts('file');
  let failures = 0;
  for (const [name, fault] of Object.entries(bad)) {
    failures += 1;
    sandbox.faults.add({ route: task, ...fault });
    await runNow(stack, app, task);
    expect({ name, ...(await taskOf(sql, task)) }).toMatchObject({ name, outcome: 'unreadable', failures });
    expect({ name, contents: await contents(sql), token: await token(sql) }).toEqual({ name, ...before });
  }
  expect(logged(stack, `${task}.failed`)).toHaveLength(failures);
  for (const [nth, line] of logged(stack, `${task}.failed`).entries())
    expect(line).toMatchObject({
      level: nth === 0 ? 'warn' : 'debug',
      because: 'unreadable',
      httpStatus: 200,
      hint: expect.anything() as unknown,
      times: nth + 1,
    });
  expect(await metric(app, 'syncs_total', `kind="${task}",outcome="unreadable"`)).toBe(failures);
  expect(await metric(app, 'partner_requests_total', `route="${task}",outcome="unreadable"`)).toBe(failures);
  expect(sandbox.counts('file')).toBe(downloads);
  expect(await catalogState(sql)).toBe('ok');
  await runNow(stack, app, task);
  await stack.caughtUp();
  await stack.everythingDue();
  await stack.caughtUp();
  await expectMirrorIsTrue(sql, sandbox.world);
}

test('a delta answer that cannot be read moves no token, marks no SKU, and does not break the chain', () =>
  bearAll('delta', BAD_DELTAS, 801));

test('a manifest answer that cannot be read is followed by no download and changes nothing', () =>
  bearAll('manifest', BAD_MANIFESTS, 802));

describe('a bulk answer', () => {
  test('that names unrequested SKUs changes none of them, and is counted and logged', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 803, liveShare: 0, ghostShare: 0 } });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    const [asked = '', known = '', other = ''] = [...sandbox.world.truth().values()]
      .filter((row) => Object.keys(row.sizeMap).length > 0)
      .map(({ sku }) => sku);
    const rest = async () => ({
      skus: await sql`select * from catalog.skus where sku <> ${asked} order by sku`,
      prices: await sql`select * from catalog.prices order by sku, size`,
      history: await sql`select * from catalog.price_history`,
      due: await sql`select * from catalog_internal.due where sku <> ${asked} order by sku`,
    });
    const before = await rest();
    sandbox.faults.add({
      route: 'bulk',
      mutate: (body) => ({
        ...body,
        results: { ...(body['results'] as object), [other]: { code: '0000', size_map: {}, product: {} } },
        not_found: [known, ...MANY],
        errors: [known],
      }),
    });
    await refreshSkus(sql, [asked]);
    const line = await nextLog(stack, 'bulk.unaccounted', 0);
    expect(line).toMatchObject({ level: 'warn', asked: 1, resolved: 1, unexpected: MANY.length + 2 });
    await stack.caughtUp();
    expect(await rest()).toEqual(before);
    expect(await metric(app, 'bulk_unaccounted_skus_total')).toBe(MANY.length + 2);
    expect(await metric(app, 'bulk_skus_total', 'outcome="not_found"')).toBe(0);
  });

  test('that was asked for no SKU is reported as a wrong body key until the first good answer, and blames no SKU', async () => {
    await using stack = await createStack({
      sandbox: { skus: 60, seed: 806, liveShare: 0, ghostShare: 0 },
      env: { BULK_MAX_SKUS: '1' },
    });
    const { sandbox, sql } = stack;
    const empty = { requested: 0, deduped: 0, results: {}, not_found: [], deferred: [], errors: [] };
    sandbox.faults.add({ route: 'bulk', body: empty, times: Infinity });
    const app = await stack.start();
    const line = await nextLog(stack, 'bulk.failed', 0);
    expect(line).toMatchObject({ because: 'no-skus-read', next: expect.any(String) as unknown });
    const ready = async () => JSON.stringify(await readyz(app));
    await eventually(async () => expect(await ready()).toContain('PARTNER_BULK_BODY_KEY'));
    // Each of these calls contained one SKU.
    await eventually(() => logged(stack, 'bulk.failed').length > 0 && sandbox.counts('bulk') > 4);
    const [{ punished }] = await sql<[{ punished: number }]>`
      select count(*)::int as punished from catalog_internal.due where failures > 0 or lane = catalog_internal.lane_of('error')`;
    expect(punished).toBe(0);
    sandbox.faults.clear();
    await sql`update catalog_internal.tasks set next_at = now() where task = 'reprice'`;
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, sandbox.world);
    expect(await ready()).not.toContain('PARTNER_BULK_BODY_KEY');
  });

  test('with records that cannot be read leaves their SKUs unchanged and due, as errors', async () => {
    await using stack = await createStack({
      sandbox: { skus: 60, seed: 804, liveShare: 0, ghostShare: 0 },
      env: { ERROR_INTERVAL: '1h' },
    });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    const records: Readonly<Record<string, unknown>> = {
      'without a size_map': { code: '0000', product: {} },
      'of another code': { code: '0009', message: 'SKU not found' },
      'with a list for a size_map': { code: '0000', size_map: [{ size: '9', price: 90 }] },
      'that is null': null,
      'that is text': 'sold out',
      'with a size key that no column holds': {
        code: '0000',
        size_map: { ['9'.repeat(600)]: 1 },
        product: {},
      },
      'with an entry nested without end': { code: '0000', size_map: { M: deep(100) }, product: {} },
    };
    const skus = [...sandbox.world.truth().keys()].slice(20, 20 + Object.keys(records).length);
    const bad = Object.fromEntries(Object.values(records).map((record, i) => [skus[i], record]));
    sandbox.faults.add({
      route: 'bulk',
      mutate: (body) => ({ ...body, results: { ...(body['results'] as object), ...bad } }),
    });
    const before = await contents(sql);
    await refreshSkus(sql, skus);
    await nextLog(stack, 'bulk.unaccounted', 0);
    expect(logged(stack, 'bulk.unaccounted')[0]).toMatchObject({ unreadable: skus.length, resolved: 0 });
    expect(await contents(sql)).toEqual(before);
    const due = await sql`
      select sku, failures, due_at <= now() as due from catalog_internal.due where failures > 0 order by sku`;
    expect([...due]).toEqual(skus.toSorted().map((sku) => ({ sku, failures: 1, due: true })));
    expect(await metric(app, 'bulk_skus_total', 'outcome="error"')).toBe(skus.length);
    // The catalog is counted in the background.
    await eventually(async () => (await metric(app, 'due_skus', 'reason="error"')) === skus.length, {
      what: 'a count with the errors',
    });

    await refreshSkus(sql, skus);
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, sandbox.world);
  });
});

function deep(levels: number): unknown {
  return levels === 0 ? 1 : [deep(levels - 1)];
}
