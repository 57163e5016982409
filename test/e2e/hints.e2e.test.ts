import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { askedSince, logged, metric, nextLog, runNow } from '../contract/harness.ts';
import { eventually } from '../support/eventually.ts';
import { createStack, type Stack } from '../support/stack.ts';

/** So few calls a minute, of five live SKUs each, that 600 of them take three minutes. */
const SCARCE = { PARTNER_RATE_LIMIT: '40', LIVE_INTERVAL: '30s', LOG_LEVEL: 'debug' };
const SLOW = 90_000;

interface Service extends AsyncDisposable {
  hint(source: string, skus: readonly string[]): Promise<void>;
}

/** Creates another service of the seller, whose login has the rights of catalog_watcher and no other. */
async function service({ sql, databaseUrl }: Stack): Promise<Service> {
  const role = `service_${randomBytes(6).toString('hex')}`;
  await sql.unsafe(`create role ${role} login password 'x' in role catalog_watcher`);
  const url = new URL(databaseUrl);
  url.username = role;
  url.password = 'x';
  const own = connect(url.href, { max: 1 });
  return {
    async hint(source, skus) {
      await own`select catalog.hint(sku, ${source}) from unnest(${skus as string[]}::text[]) sku`;
    },
    async [Symbol.asyncDispose]() {
      await own.end({ timeout: 2 });
      await sql.unsafe(`drop role ${role}`);
    },
  };
}

/** Returns a function that reads the sandbox's new hints since its last call. */
function hintReader({ sandbox }: Stack): () => Promise<string[]> {
  let after = 0;
  return async () => {
    const answer = await fetch(`${sandbox.url}/sandbox/hints?after=${after}`);
    const { hints, next } = (await answer.json()) as { hints: { sku: string }[]; next: number };
    after = next;
    return [...new Set(hints.map(({ sku }) => sku))];
  };
}

/**
 * Makes it look as if hardly anything moved for days: each SKU was refreshed minutes ago, and the next refreshes
 * are spread out.
 */
async function calmDays(sql: Sql): Promise<void> {
  await sql`update catalog_internal.live_rates set alpha = 10, beta = 40000, short_odds = null, wholesale_moves = 0, wholesale_minutes = 2880`;
  await sql`update catalog.skus set asked_at = asked_at - interval '10 minutes', priced_at = priced_at - interval '10 minutes'`;
  await sql`update catalog_internal.pace_sends set sent_at = sent_at - interval '10 minutes'`;
  await sql`update catalog_internal.due set due_at = now() + interval '10 minutes' * random() where live`;
  await sql`update catalog_internal.tasks set next_at = now() where task = 'live-plan'`;
}

const precisionOf = async (sql: Sql, source: string) => {
  const [row] = await sql<[{ precision: number; tested: number }?]>`
    select precision, refreshes_tested as tested from catalog.hint_sources where source = ${source}`;
  return row ?? { precision: Number.NaN, tested: 0 };
};

test('a source of hints is trusted as far as it proves right, and its SKUs are refreshed before others', async () => {
  await using stack = await createStack({
    sandbox: {
      skus: 1200,
      liveShare: 0.5,
      ghostShare: 0,
      seed: 2003,
      hintRecall: 0.9,
      hintPrecision: 0.9,
    },
  });
  const { sandbox, sql } = stack;
  const told = hintReader(stack);
  await using other = await service(stack);
  await stack.once();
  await calmDays(sql);
  const lines = stack.logs.length;
  const app = await stack.start(SCARCE);
  expect(await nextLog(stack, 'live-plan.done', lines)).toMatchObject({ scarce: 1 });
  const move = async () => {
    const answer = await fetch(`${sandbox.url}/sandbox/step`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ steps: 20 }),
    });
    expect(answer.status).toBe(200);
    return await told();
  };

  const first = await move();
  expect(first.length).toBeGreaterThan(20);
  // From the same login, and never right.
  const still = [...sandbox.world.truth().values()]
    .filter(({ sku, priceSource }) => priceSource === 'live' && !first.includes(sku))
    .slice(0, 20)
    .map(({ sku }) => sku);
  await other.hint('rumours', still);
  await other.hint('orders', first);
  await eventually(
    async () => {
      const [orders, rumours] = [await precisionOf(sql, 'orders'), await precisionOf(sql, 'rumours')];
      expect(Math.min(orders.tested, rumours.tested)).toBeGreaterThan(15);
      expect(orders.precision).toBeGreaterThan(0.6);
      expect(rumours.precision).toBeLessThan(0.2);
    },
    { within: SLOW, what: 'refreshes have tested both sources' },
  );
  const { precision } = await precisionOf(sql, 'orders');
  expect(await metric(app, 'hint_precision_ratio', 'source="orders"')).toBeGreaterThanOrEqual(
    precision - 0.2,
  );
  expect(await metric(app, 'hints_total', 'source="rumours"')).toBe(still.length);

  // Those that may be refreshed again, a minute after the last refresh.
  const all = await move();
  const rows = await sql<{ sku: string }[]>`
    select sku from catalog.skus where sku = any(${all}) and price_source = 'live' and asked_at < now() - interval '1 minute'`;
  const hinted = rows.map(({ sku }) => sku);
  expect(hinted.length).toBeGreaterThan(10);
  await other.hint('orders', hinted);
  const from = sandbox.requests.length;
  const asked = () => askedSince(stack, from).flat();
  // On a busy machine some calls pass before one reads the hints.
  await eventually(async () => {
    const [{ unread }] = await sql<
      [{ unread: number }]
    >`select count(*)::int as unread from catalog_internal.hints`;
    expect(unread).toBe(0);
  });
  // A call or two may be in flight.
  const soon = asked().length + hinted.length + 15;
  await eventually(() => expect(asked().length).toBeGreaterThanOrEqual(soon), { within: SLOW });
  const early = asked()
    .slice(0, soon)
    .filter((sku) => hinted.includes(sku));
  // By chance it would be a tenth.
  expect(early.length / hinted.length).toBeGreaterThan(0.7);
});

/** So few calls a minute that the due ones of 500 live SKUs are a backlog. */
const BEHIND = { PARTNER_RATE_LIMIT: '30', LIVE_INTERVAL: '30s', LOG_LEVEL: 'debug' };

const LINE = { brand: 'Acme', model: 'Runner' };

test('after an outage, important SKUs come first, then hinted ones, and a line as soon as it is known to move', async () => {
  await using stack = await createStack({
    sandbox: { skus: 1000, liveShare: 0.5, ghostShare: 0, seed: 2004, hintRecall: 1, hintPrecision: 1 },
  });
  const { sandbox, sql } = stack;
  const live = [...sandbox.world.truth().values()].filter(({ priceSource }) => priceSource === 'live');
  const every = (nth: number, from: number) => live.flatMap(({ sku }, n) => (n % nth === from ? [sku] : []));
  const [watched, hinted, line] = [every(100, 1), every(25, 2), every(5, 3)];
  for (const sku of line) sandbox.world.setProduct(sku, LINE);
  await sql`insert into catalog.watchlist ${sql(watched.map((sku) => ({ sku, weight: 50 })))}`;
  await stack.once();

  const told = hintReader(stack);
  await using other = await service(stack);
  await told();
  sandbox.faults.add({ route: 'bulk', times: Infinity, status: 503, body: '' });
  const during = await stack.start(BEHIND);
  await sql`update catalog_internal.due set due_at = now() where live`;
  await nextLog(stack, 'bulk.failed', 0);
  for (const sku of hinted)
    for (const [size, price] of Object.entries(sandbox.world.find(sku)?.sizeMap ?? {}))
      sandbox.world.setPrice(sku, size, (price ?? 1000) + 100);
  const signs = await told();
  expect(signs.toSorted()).toEqual(hinted.toSorted());
  await other.hint('orders', signs);
  await eventually(async () => {
    await during.wake('reprice');
    const [row] = await sql<
      [{ count: number }]
    >`select count(*)::int as count from catalog_internal.waiting_hints`;
    expect(row.count).toBe(hinted.length);
  });
  await during.stop();

  await calmDays(sql);
  await sql`update catalog.skus set asked_at = asked_at - interval '2 hours', priced_at = priced_at - interval '2 hours'`;
  await sql`update catalog_internal.live_calls set called_at = called_at - interval '2 hours'`;
  await sql`update catalog_internal.live_plan set refreshed_at = refreshed_at - interval '2 hours', solved_at = solved_at - interval '2 hours'`;
  await sql`update catalog_internal.tasks set next_at = next_at - interval '2 hours'`;
  await sql`update catalog_internal.pace_sends set sent_at = sent_at - interval '2 hours'`;
  // By due time, the watched and the hinted SKUs would be last.
  await sql`
    update catalog_internal.due set largest_call = null, held_until = null, failures = 0,
      due_at = now() - interval '1 hour' * case when sku = any(${[...watched, ...hinted]}) then 0.01 else 0.1 + random() end
    where live`;
  expect(sandbox.world.release(LINE)?.skus.length).toBeGreaterThan(50);
  sandbox.faults.clear();

  const from = sandbox.requests.length;
  const lines = stack.logs.length;
  const asked = () => askedSince(stack, from).flat();
  const app = await stack.start(BEHIND);
  const { backlog, scarce } = await nextLog(stack, 'live-plan.done', lines);
  const before = asked().length;
  expect(scarce).toBe(1);
  expect(Number(backlog)).toBeGreaterThan(400);
  const both = watched.length + hinted.length;
  await eventually(() => expect(asked().length).toBeGreaterThanOrEqual(before + both + 10), { within: SLOW });
  const places = (skus: readonly string[]) => skus.map((sku) => asked().indexOf(sku) - before);
  for (const [skus, most] of [
    [watched, 3 * watched.length],
    [hinted, both + 10],
  ] as const) {
    // A call may be in flight before the list of the most worthwhile SKUs is made.
    expect(Math.min(...places(skus).map((place) => place + before))).toBeGreaterThanOrEqual(0);
    expect(Math.max(...places(skus))).toBeLessThan(most);
  }

  const turned = (event: string) =>
    eventually(() => expect(logged(stack, event)).not.toEqual([]), { within: SLOW });
  await turned('release.suspected');
  // As a minute later: a new list of the most worthwhile SKUs.
  await runNow(stack, app, 'live-plan');
  await turned('release.confirmed');
  await runNow(stack, app, 'live-plan');
  const known = asked();
  const left = line.filter((sku) => !known.includes(sku));
  expect(left.length).toBeGreaterThan(30);
  const soon = left.length + 15;
  await eventually(() => expect(asked().length).toBeGreaterThanOrEqual(known.length + soon), {
    within: SLOW,
  });
  const next = asked().slice(known.length, known.length + soon);
  // By chance it would be a fifth.
  expect(next.filter((sku) => left.includes(sku)).length / left.length).toBeGreaterThan(0.7);
});
