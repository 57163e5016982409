import { expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { storeFailedCall } from '../../src/store/call/call-lesson.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { markUnstored } from '../../src/store/ledger/claim.ts';
import { type Claim, returnClaim } from '../../src/store/ledger/due.ts';
import { createDatabase } from '../support/db.ts';
import { answerAsked, claimAll, found, knownSkus, mark, passHours, pricesOf, REFRESH } from './support.ts';

/*
 * A replica that lacks the last commits replaces the server, or a backup is loaded, while a call is under way, so
 * claim numbers that were already used are assigned again.
 */

const answered = (result: SkuResult) => async (sql: Sql, lost: Claim) => {
  const applied = await applyAnswer(sql, lost, [result], REFRESH);
  expect(applied.accepted).toBe(0);
};

const late: Readonly<Record<string, (sql: Sql, lost: Claim) => Promise<void>>> = {
  'is answered by a record': answered(found('A', { '9': 200 })),
  'is answered by a deferral': answered({ sku: 'A', kind: 'deferred', waitMs: 3_600_000 }),
  'cannot be stored': markUnstored,
  'is given back': async (sql, lost) => await returnClaim(sql, lost, ['A'], { holdMs: 3_600_000 }),
  fails: async (sql, claim) =>
    await storeFailedCall(sql, {
      claim,
      because: 'network',
      failures: 0,
      pauseMs: 0,
      holdMs: 3_600_000,
      largestCall: 1,
      callSize: null,
    }),
};

const rowsOf = async (sql: Sql) =>
  (await sql<{ row: unknown }[]>`select to_jsonb(d) as row from catalog_internal.due d`).map(
    ({ row }) => row,
  );

test.each(Object.keys(late))(
  'a lost claim that %s is not mistaken for the later one with its number',
  async (ending) => {
    const before = await createDatabase('migrated');
    const former = connect(before.url, { max: 1 });
    await knownSkus(former, ['A']);
    await answerAsked(former, found('A', { '9': 100 }));
    await former.end();
    const copy = await createDatabase({ copyOf: before.url });
    const [old, sql] = [before, copy].map(({ url }) => connect(url, { max: 1 })) as [Sql, Sql];
    try {
      // Requested, and lost; then reported after another move, and requested again.
      await mark(old, ['A']);
      const lost = await claimAll(old);
      await mark(sql, ['A']);
      const present = await claimAll(sql);
      expect(present.number).toBe(lost.number);
      // Like a SKU that came along in a spare slot: nothing else brings it forward.
      await passHours(sql, -1);
      const held = await rowsOf(sql);
      expect(held).toMatchObject([{ claim: Number(present.number) }]);
      await late[ending]?.(sql, lost);
      expect(await rowsOf(sql)).toEqual(held);
      expect(await pricesOf(sql, 'A')).toEqual({ '9': 100 });
      await applyAnswer(sql, present, [found('A', { '9': 300 })], REFRESH);
      expect(await pricesOf(sql, 'A')).toEqual({ '9': 300 });
    } finally {
      for (const one of [old, sql]) await one.end({ timeout: 2 });
      for (const database of [before, copy]) await database.drop();
    }
  },
);
