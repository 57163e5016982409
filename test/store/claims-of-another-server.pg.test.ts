import { expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { connect } from '../../src/store/connection/db.ts';
import { createDatabase } from '../support/db.ts';
import { answerAsked, claimAll, found, knownSkus, ledger, mark, pricesOf, REFRESH } from './support.ts';

/*
 * A replica that lacks the last commits takes the place of the server, or a backup is loaded, while an answer is on
 * its way: numbers of claims that were given out before are given out again.
 */

const late: Readonly<Record<string, SkuResult>> = {
  'a record': found('A', { '9': 200 }),
  'a deferral': { sku: 'A', kind: 'deferred', waitMs: 3_600_000 },
};

test.each(Object.keys(late))(
  'the late answer to a lost claim, %s, is not that to a later one with its number',
  async (name) => {
    const before = await createDatabase('migrated');
    const former = connect(before.url, { max: 1 });
    await knownSkus(former, ['A']);
    await answerAsked(former, found('A', { '9': 100 }));
    await former.end();
    const copy = await createDatabase({ copyOf: before.url });
    const [old, sql] = [before, copy].map(({ url }) => connect(url, { max: 1 })) as [
      typeof former,
      typeof former,
    ];
    try {
      // Reported, asked for, and lost; then reported again after another move, and asked for again.
      await mark(old, ['A']);
      const lost = await claimAll(old);
      await mark(sql, ['A']);
      const present = await claimAll(sql);
      expect(present.number).toBe(lost.number);
      const applied = await applyAnswer(sql, lost, [late[name] as SkuResult], REFRESH);
      expect(applied.accepted).toBe(0);
      expect(await pricesOf(sql, 'A')).toEqual({ '9': 100 });
      expect((await ledger(sql)).get('A')).toMatchObject({ claim: present.number });
      await applyAnswer(sql, present, [found('A', { '9': 300 })], REFRESH);
      expect(await pricesOf(sql, 'A')).toEqual({ '9': 300 });
    } finally {
      for (const one of [old, sql]) await one.end({ timeout: 2 });
      for (const database of [before, copy]) await database.drop();
    }
  },
);
