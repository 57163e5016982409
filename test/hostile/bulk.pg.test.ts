import { assert, asyncProperty } from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { mark } from '../store/support.ts';
import { runs } from '../support/soak.ts';
import { brokenAnswers } from './broken-answers.ts';
import { CATALOG, type Finished, LEDGER, useHostileMirror } from './mirror.ts';
import { anyMutations, mutated } from './mutations.ts';
import {
  A,
  ASKED,
  BENT,
  type SkuResult,
  goodAnswer,
  priceOf,
  recordOf,
  UNREADABLE,
} from './reconciliation-cases.ts';
import { resultsByPartnerRules } from './reconciliation-oracle.ts';
import { sendBytes, sendJson, skuNumber } from './upstream.ts';

/** An answer is read as a whole, up to 64 MiB: its bytes, its text, and the parsed JSON. */
const HEAP_MIB = 384;
const CEILING_MIB = 640;
const RUNS = runs(60);
/** New in each run, and printed; SEED repeats a run. */
const SEED = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

const mirror = useHostileMirror(HEAP_MIB);

/** Restores the baseline, with six SKUs due. */
async function startAgain(): Promise<void> {
  await mirror.restore();
  await mark(mirror.sql, ASKED);
}

beforeEach(startAgain);

interface Owed {
  readonly sku: string;
  readonly reason: string;
  readonly claimed: boolean;
  readonly held: boolean;
  readonly failures: number;
  readonly deferrals: number;
}

async function owed(): Promise<Map<string, Owed>> {
  const rows = await mirror.sql<Owed[]>`
    select sku, reason, claim is not null as claimed, coalesce(held_until > now(), false) as held, failures, deferrals
    from catalog_internal.due where sku = any(${ASKED as string[]}) order by sku`;
  return new Map(rows.map((row) => [row.sku, row]));
}

const broken = [
  ...brokenAnswers(JSON.stringify(goodAnswer())),
  ...UNREADABLE.map(({ name, body }) => ({
    name,
    because: 'unreadable' as const,
    reply: (response: Parameters<typeof sendJson>[0]) => sendJson(response, body),
  })),
  {
    name: 'that was asked for no SKU',
    because: 'no-skus-read' as const,
    reply: (response: Parameters<typeof sendJson>[0]) =>
      sendJson(response, { results: {}, not_found: [], deferred: [], errors: [], requested: 0, deduped: 0 }),
  },
];

/**
 * Checks that the call changed nothing: every SKU is due as before, and its next call is half as large, unless the
 * body key is at fault.
 */
async function expectGivenBack(
  ended: Finished,
  because: string,
  before: Readonly<Record<string, string>>,
): Promise<void> {
  const isConfiguration = because === 'no-skus-read';
  expect(ended).toMatchObject({ kind: isConfiguration ? 'wait' : 'called', error: null });
  const halves = await mirror.sql<{ sku: string }[]>`
    update catalog_internal.due set largest_call = null where largest_call = ${ASKED.length / 2} returning sku`;
  expect(halves.map(({ sku }) => sku).toSorted()).toEqual(isConfiguration ? [] : ASKED);
  expect(await mirror.digest()).toEqual(before);
  expect(ended.moved).toEqual({ [`partner_requests_total bulk ${because}`]: 1 });
}

describe('a bulk answer that cannot be read changes nothing', () => {
  test.each(broken)('$name', async ({ because, reply }) => {
    const before = await mirror.digest();
    const ended = await mirror.run('bulk', { bulk: reply });
    await expectGivenBack(ended, because, before);
    expect(ended.peakMiB).toBeLessThan(CEILING_MIB);
  });
});

/** Checks every table for each SKU. `outcomes` covers everything that the answer may have changed. */
async function expectSettled(ended: Finished, outcomes: Readonly<Record<string, SkuResult>>): Promise<void> {
  expect(ended).toMatchObject({
    kind: 'called',
    error: null,
    moved: { 'partner_requests_total bulk ok': 1 },
  });
  const having = (settledAs: SkuResult) => ASKED.filter((sku) => outcomes[sku] === settledAs);
  expect(await mirror.moved(CATALOG)).toEqual([...having('record'), ...having('not_found')].toSorted());
  expect(await mirror.moved([LEDGER])).toEqual(ASKED);
  const ledger = await owed();
  const waiting = { reason: 'changed', held: true, claimed: false };
  for (const sku of having('error')) expect(ledger.get(sku)).toMatchObject({ ...waiting, failures: 1 });
  for (const sku of having('deferred')) expect(ledger.get(sku)).toMatchObject({ ...waiting, deferrals: 1 });
  const missing = await mirror.sql<{ sku: string }[]>`
    select sku from catalog.skus where state = 'not_found'`;
  expect(missing.map(({ sku }) => sku).toSorted()).toEqual(having('not_found'));
  const counters = {
    record: 'resolved',
    not_found: 'not_found',
    deferred: 'deferred',
    error: 'error',
  } as const;
  for (const [settledAs, outcome] of Object.entries(counters))
    expect(ended.moved[`bulk_skus_total ${outcome}`] ?? 0).toBe(having(settledAs as SkuResult).length);
  expect(ended.peakMiB).toBeLessThan(CEILING_MIB);
}

describe('a partly contradictory bulk answer changes only what it says unambiguously', () => {
  test.each(BENT)('$name', async ({ body, outcomes }) => {
    let asked: readonly string[] = [];
    const { token } = await mirror.digest();
    const ended = await mirror.run('bulk', {
      bulk: (response, skus) => {
        asked = skus;
        sendJson(response, body);
      },
    });
    expect(asked.toSorted()).toEqual(ASKED);
    await expectSettled(ended, outcomes);
    expect((await mirror.digest())['token']).toBe(token);
    for (const sku of ASKED.filter((one) => one !== A && outcomes[one] === 'record')) {
      const prices = await mirror.sql`select size, price from catalog.prices where sku = ${sku}`;
      expect([...prices]).toEqual([{ size: 'US 9', price: priceOf(sku) }]);
    }
  });

  test(
    `a mutated answer changes only what it says unambiguously (${RUNS} answers, seed ${SEED})`,
    { timeout: 600_000 },
    async () => {
      const settles = asyncProperty(anyMutations, async (mutations) => {
        await startAgain();
        const text = mutated(mutations);
        const outcomes = resultsByPartnerRules(text);
        const before = await mirror.digest();
        const ended = await mirror.run('bulk', { bulk: (response) => sendBytes(response, text) });
        const { requested } = JSON.parse(text) as { requested?: unknown };
        // If it says that nothing was asked for and answers nothing, the partner has not read the call's SKUs.
        const unasked = ended.because === 'no-skus-read' && Number(requested) === 0;
        if (outcomes !== null && !unasked) return await expectSettled(ended, outcomes);
        if (unasked) expect(new Set(Object.values(outcomes ?? {}))).toEqual(new Set(['error']));
        await expectGivenBack(ended, unasked ? 'no-skus-read' : 'unreadable', before);
      });
      await assert(settles, { numRuns: RUNS, seed: SEED });
    },
  );

  test('a product keeps members of any name, and its text is made storable', async () => {
    const product = Object.fromEntries([
      ['__proto__', 'kept'],
      ['name', 'a\0b'],
    ]);
    const body = { results: Object.fromEntries([[A, { ...recordOf(A), product }]]) };
    await mirror.run('bulk', { bulk: (response) => sendJson(response, body) });
    const [row] = await mirror.sql`
      select name, product ->> '__proto__' as odd from catalog.products where sku = ${A}`;
    expect(row).toEqual({ name: 'a\uFFFDb', odd: 'kept' });
  });

  test('unrequested and contradictory SKUs are counted', async () => {
    const body = { ...goodAnswer(), errors: [A, skuNumber(200), 'toString'] };
    const ended = await mirror.run('bulk', { bulk: (response) => sendJson(response, body) });
    // Two unrequested, one contradictory, one omitted.
    expect(ended.moved).toMatchObject({ bulk_unaccounted_skus_total: 4 });
  });
});
