import {
  array,
  assert,
  asyncProperty,
  constant,
  constantFrom,
  dictionary,
  oneof,
  option,
  record,
  uniqueArray,
} from 'fast-check';
import { expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { type Claim, endWaits } from '../../src/store/ledger/due.ts';
import { runs } from '../support/soak.ts';
import {
  claimAll,
  empty,
  found,
  HOUR,
  knownSkus,
  answerAsked,
  REFRESH,
  mark,
  passHours,
  removeByDelta,
  useStore,
} from './support.ts';

const store = useStore();
const SKUS = ['A', 'NULL', 'b\'\\"', '__proto__'];
const anySize = constantFrom('9', '9.5', 'NULL', '"', '\\', '{a,b}', '', '__proto__', "'", '€😀');
const anyPrice = oneof(constant(null), constantFrom(100, 200, 300));
const anyAnswer = oneof(
  {
    weight: 4,
    arbitrary: record({
      kind: constant('record' as const),
      prices: dictionary(
        anySize,
        record({ price: anyPrice, entry: option(constantFrom('{"n":1}', '{"n":2}', '"x"')) }),
        { maxKeys: 4 },
      ),
      name: constantFrom(null, 'N', 'NULL'),
      sizeType: constantFrom('US', 'EU', null),
    }),
  },
  {
    weight: 2,
    arbitrary: record({ kind: constantFrom('not_found' as const, 'deferred' as const, 'error' as const) }),
  },
);
const anyTurn = oneof(
  {
    weight: 5,
    arbitrary: record({
      do: constant('look' as const),
      answers: uniqueArray(record({ sku: constantFrom(...SKUS), answer: anyAnswer }), {
        minLength: 1,
        selector: ({ sku }) => sku,
      }),
    }),
  },
  {
    weight: 1,
    arbitrary: record({ do: constantFrom('late' as const, 'remove' as const), sku: constantFrom(...SKUS) }),
  },
  { weight: 1, arbitrary: constant({ do: 'replay' as const }) },
);

interface Known {
  state: string;
  everPriced: boolean;
  prices: Map<string, { price: number | null; entry: string | null }>;
  metadata: { name: string | null; sizeType: string | null } | null;
}

/** The mirror as maps and lists: what any sequence of answers must leave in the tables. */
class MirrorModel {
  readonly skus = new Map<string, Known>(
    SKUS.map((sku) => [sku, { state: 'pending', everPriced: false, prices: new Map(), metadata: null }]),
  );
  readonly moves: string[] = [];
  readonly metadataMoves: string[] = [];

  answer(result: SkuResult): void {
    const known = this.skus.get(result.sku)!;
    if (result.kind === 'record') {
      this.#prices(
        result.sku,
        known,
        new Map(result.prices.map(({ size, price, entry }) => [size, { price, entry }])),
      );
      this.#metadata(result.sku, known, {
        name: result.product.name,
        sizeType: result.product.size_map_size_type,
      });
      Object.assign(known, { state: 'priced', everPriced: true });
    } else if (result.kind === 'not_found') {
      this.#prices(result.sku, known, new Map());
      if (known.state !== 'removed') known.state = 'not_found';
    }
  }

  remove(sku: string): void {
    const known = this.skus.get(sku)!;
    this.#prices(sku, known, new Map());
    known.state = 'removed';
  }

  #prices(sku: string, known: Known, next: Known['prices']): void {
    for (const size of new Set([...known.prices.keys(), ...next.keys()])) {
      const before = known.prices.get(size)?.price ?? null;
      const after = next.get(size)?.price ?? null;
      if (known.everPriced && before !== after) this.moves.push(`${sku} ${size}: ${before} → ${after}`);
    }
    known.prices = next;
  }

  #metadata(sku: string, known: Known, said: NonNullable<Known['metadata']>): void {
    const before = known.metadata;
    // A missing value is no correction.
    const next = {
      name: said.name ?? before?.name ?? null,
      sizeType: said.sizeType ?? before?.sizeType ?? null,
    };
    if (before !== null && before.name !== next.name)
      this.metadataMoves.push(`${sku} name: ${before.name} → ${next.name}`);
    if (before !== null && before.sizeType !== next.sizeType)
      this.metadataMoves.push(`${sku} size_map_size_type: ${before.sizeType} → ${next.sizeType}`);
    known.metadata = next;
  }

  shown() {
    return {
      states: [...this.skus].map(([sku, { state }]) => `${sku} ${state}`).toSorted(inOrder),
      prices: [...this.skus]
        .flatMap(([sku, { prices }]) =>
          [...prices].map(
            ([size, { price, entry }]) =>
              `${sku} ${size}: ${price} ${entry === null ? null : canonical(entry)}`,
          ),
        )
        .toSorted(inOrder),
      moves: this.moves.toSorted(inOrder),
      metadataMoves: this.metadataMoves.toSorted(inOrder),
    };
  }
}

const inOrder = (a: string, b: string) => (a < b ? -1 : Number(a > b));
const canonical = (json: string) => JSON.stringify(JSON.parse(json));

async function shown() {
  const { sql } = store;
  const lines = async (rows: Promise<readonly { line: string }[]>) =>
    (await rows).map(({ line }) => line).toSorted(inOrder);
  const prices = await sql<{ sku: string; size: string; price: number | null; entry: unknown }[]>`
    select sku, size, price, entry from catalog.prices`;
  return {
    states: await lines(sql`select sku || ' ' || state as line from catalog.skus`),
    prices: prices.map((p) => `${p.sku} ${p.size}: ${p.price} ${JSON.stringify(p.entry)}`).toSorted(inOrder),
    moves: await lines(sql`
      select format('%s %s: %s → %s', sku, size, coalesce(old_price::text, 'null'), coalesce(new_price::text, 'null')) as line
      from catalog.price_history`),
    metadataMoves: await lines(sql`
      select format('%s %s: %s → %s', sku, field, coalesce(old_value, 'null'), coalesce(new_value, 'null')) as line
      from catalog.product_history`),
  };
}

type Answer =
  | { kind: 'not_found' | 'deferred' | 'error' }
  | {
      kind: 'record';
      prices: Record<string, { price: number | null; entry: string | null }>;
      name: string | null;
      sizeType: string | null;
    };

function skuResultOf(sku: string, answer: Answer): SkuResult {
  if (answer.kind === 'not_found') return { sku, kind: 'not_found' };
  if (answer.kind !== 'record') return { sku, kind: answer.kind, waitMs: HOUR };
  const prices = Object.entries(answer.prices).map(([size, value]) => ({ size, ...value }));
  return found(sku, prices, { name: answer.name, size_map_size_type: answer.sizeType });
}

/** Returns a claim whose lease has run out: an answer to it must change nothing. */
async function lateClaim(sku: string): Promise<Claim> {
  await mark(store.sql, [sku]);
  const claim = await claimAll(store.sql);
  await passHours(store.sql, 3);
  await endWaits(store.sql, 100);
  return claim;
}

test('any sequence of answers, late answers, replays and removals leaves the mirror as a simple model does', async () => {
  await assert(
    asyncProperty(array(anyTurn, { maxLength: 20, size: 'max' }), async (turns) => {
      const { sql } = store;
      await empty(sql);
      await knownSkus(sql, SKUS);
      const model = new MirrorModel();
      let last: { claim: Claim; results: SkuResult[] } | null = null;
      for (const turn of turns) {
        await passHours(sql, 2);
        await endWaits(sql, 100);
        if (turn.do === 'look') {
          const results = turn.answers.map(({ sku, answer }) => skuResultOf(sku, answer));
          last = { claim: await answerAsked(sql, ...results), results };
          for (const result of results) model.answer(result);
        } else if (turn.do === 'late') {
          const claim = await lateClaim(turn.sku);
          await applyAnswer(sql, claim, [found(turn.sku, { late: 1 }, { name: 'late' })], REFRESH);
        } else if (turn.do === 'remove') {
          await removeByDelta(sql, turn.sku);
          model.remove(turn.sku);
        } else if (last !== null) {
          await applyAnswer(sql, last.claim, last.results, REFRESH);
        }
      }
      expect(await shown()).toEqual(model.shown());
    }),
    { numRuns: runs(30, 60) },
  );
});
