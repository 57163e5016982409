import fc from 'fast-check';
import { expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { CEILING_MET } from '../../src/store/ledger/due.ts';
import { claimAll, knownSkus, mark, REFRESH, useStore } from '../store/support.ts';
import { runs } from '../support/soak.ts';
import { afterDeferral, afterError, type Deferrals, ownOf, UNDEFERRED } from './deferrals.ts';

const store = useStore();
const LANES: readonly Deferrals['lane'][] = ['urgent', 'live', 'new', 'error'];

test('the ledger counts drawn deferrals like the simulation, with and without a ceiling, and through errors', async () => {
  const { sql } = store;
  let drawnSoFar = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom('met', 'met', 'met', 'unmet', 'error'), { minLength: 1, maxLength: 9 }),
      fc.constantFrom('live', 'changed'),
      async (turns, reason) => {
        drawnSoFar += 1;
        const sku = `A${drawnSoFar}`;
        await sql`update catalog_internal.due set held_until = 'infinity'`;
        await knownSkus(sql, [sku], { priceSource: 'live' });
        await mark(sql, [sku], reason, true);
        let expected: Deferrals = { ...UNDEFERRED, lane: reason === 'live' ? 'live' : 'urgent' };
        for (const turn of turns) {
          const claim = await claimAll(sql);
          expect(claim.skus).toMatchObject([{ sku, deferrals: ownOf(expected) }]);
          const result = { sku, kind: turn === 'error' ? 'error' : 'deferred', waitMs: 1 } as const;
          const because = turn === 'error' ? 'reported' : turn === 'met' ? CEILING_MET : undefined;
          await applyAnswer(sql, claim, [{ ...result, because } as SkuResult], REFRESH);
          expected = turn === 'error' ? afterError(expected) : afterDeferral(expected, turn === 'met');
          const [row] = await sql`
            update catalog_internal.due set held_until = null where sku = ${sku} returning deferrals, last_error as "lastError", lane`;
          expect({ ...row, lane: LANES[Number(row?.['lane']) - 1] }).toEqual(expected);
        }
      },
    ),
    { numRuns: runs(8, 100), examples: [[['met', 'error', 'unmet', 'met'], 'live']] },
  );
});
