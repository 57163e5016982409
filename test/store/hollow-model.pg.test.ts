import fc from 'fast-check';
import { expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { APART_MINUTES } from '../../src/store/answer/mass-move.ts';
import { runs } from '../support/soak.ts';
import { doubting, USUAL } from './doubting.ts';
import { claimAll, found, knownSkus, mark, REFRESH, useStore } from './support.ts';

/*
 * A partner whose price store is cold for some SKUs: their first records have no size, no price, or fewer sizes
 * than the manifest counts. The true ones come with later refreshes, or are like that as well.
 */
const store = useStore();
const { passMinutes, priced } = doubting(store);

const SAYS = {
  nothing: {},
  nulls: { 40: null, 41: null, 42: null, 43: null },
  fewer: { 41: 4100 },
  some: { ...USUAL, 40: null },
  all: USUAL,
} as const;
type Said = keyof typeof SAYS;
const isUnpriced = (said: Said) => said === 'nothing' || said === 'nulls';

interface Sku {
  /** The number of sizes in the manifest. */
  readonly counted: number | null;
  readonly source: 'live' | 'snapshot';
  /** What refreshes find, one after another. */
  readonly looks: readonly Said[];
  /** What the partner answers in the end. */
  readonly truth: Said;
}

const said = fc.constantFrom(...(Object.keys(SAYS) as Said[]));
const LOOKS = 5;
const sku: fc.Arbitrary<Sku> = fc.record({
  counted: fc.constantFrom(4, 4, 1, 0, null),
  source: fc.constantFrom('live' as const, 'snapshot' as const),
  looks: fc.array(said, { minLength: 1, maxLength: LOOKS }),
  truth: said,
});
/** Minutes before each refresh. */
const pauses = fc.array(fc.constantFrom(0, 1, 4, APART_MINUTES, 30), { minLength: LOOKS, maxLength: LOOKS });

let drawn = 0;

/** Lists the SKUs, which are to be requested for the first time. */
async function listed(skus: readonly Sku[]): Promise<string[]> {
  const { sql } = store;
  drawn += 1;
  const names = skus.map((_, n) => `R${drawn}-${n}`);
  await knownSkus(sql, names);
  await sql`
    update catalog.skus s set sizes = l.sizes, price_source = l.source
    from unnest(${names}::text[], ${skus.map(({ counted }) => counted)}::int[], ${skus.map(({ source }) => source)}::text[])
      as l(sku, sizes, source) where s.sku = l.sku`;
  await mark(sql, names, 'new');
  return names;
}

async function look(answers: readonly (readonly [string, Said])[]): Promise<void> {
  const { sql } = store;
  const skus = answers.map(([name]) => name);
  await sql`
    update catalog_internal.due set due_at = least(due_at, now()), held_until = null,
      reason = case when reason in ('doubted', 'new') then reason else 'sweep' end where sku = any(${skus})`;
  await sql`update catalog_internal.due set held_until = now() + interval '1 day' where not sku = any(${skus})`;
  await applyAnswer(
    sql,
    await claimAll(sql),
    answers.map(([name, says]) => found(name, SAYS[says])),
    REFRESH,
  );
}

async function trusted(
  names: readonly string[],
): Promise<Map<string, { actionable: boolean; doubt: string | null }>> {
  const rows = await store.sql<{ sku: string; actionable: boolean; doubt: string | null }[]>`
    select sku, actionable, doubt from catalog.sku_trust where sku = any(${names as string[]})`;
  return new Map(rows.map(({ sku: name, ...row }) => [name, row]));
}

test('no first record without a price is acted on before a second answer, and the true one finally is', async () => {
  await priced('other');
  await fc.assert(
    fc.asyncProperty(fc.array(sku, { minLength: 3, maxLength: 12 }), pauses, async (skus, minutes) => {
      const names = await listed(skus);
      const nameOf = (n: number) => names[n] ?? '';
      let at = 0;
      const firstAt = new Map<number, number>();
      for (let nth = 0; nth < LOOKS; nth += 1) {
        const pause = nth === 0 ? 0 : (minutes[nth] ?? 0);
        at += pause;
        await passMinutes(pause);
        const asked = skus.flatMap(({ looks }, n) => {
          const says = looks[nth];
          return says === undefined ? [] : [{ n, says }];
        });
        if (asked.length === 0) break;
        for (const { n } of asked) firstAt.set(n, firstAt.get(n) ?? at);
        await look(asked.map(({ n, says }) => [nameOf(n), says] as const));
        const trust = await trusted(names);
        for (const { n } of asked) {
          const { counted, looks } = skus[n] as Sku;
          const isHollow = (counted ?? 0) > 0 && looks.slice(0, nth + 1).every(isUnpriced);
          const isFirst = at - (firstAt.get(n) ?? 0) < APART_MINUTES;
          const shown = { looks: looks.slice(0, nth + 1), ...trust.get(nameOf(n)) };
          if (isHollow)
            expect(shown).toMatchObject({ doubt: isFirst ? 'implausible' : null, actionable: !isFirst });
          else if (nth === 0) expect(shown).toMatchObject({ doubt: null, actionable: true });
        }
      }
      for (let nth = 0; nth < 2; nth += 1) {
        await passMinutes(APART_MINUTES + 1);
        await look(skus.map(({ truth }, n) => [nameOf(n), truth] as const));
      }
      const trust = await trusted(names);
      for (const name of names)
        expect([name, trust.get(name)]).toEqual([name, { actionable: true, doubt: null }]);
    }),
    { numRuns: runs(15, 60) },
  );
});
