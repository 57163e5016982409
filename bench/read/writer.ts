import { setTimeout } from 'node:timers/promises';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { connect } from '../../src/store/connection/db.ts';
import { LEARNING, NEXT, prepare, scattered, SKUS_AN_ANSWER } from '../apply/answer.ts';
import { seeded } from '../freshness/random.ts';

/**
 * Applies answers, a tenth of their prices changed, until its parent goes: so many a minute, or one after the other
 * where that is 0. node writer.ts URL SKUS ANSWERS_A_MINUTE
 */
const [url = '', skus = '0', aMinute = '0'] = process.argv.slice(2);
const everyMs = Number(aMinute) > 0 ? 60_000 / Number(aMinute) : 0;
process.once('disconnect', () => process.exit(0));
const sql = connect(url, { max: 1 });
const names = scattered(Number(skus));
const random = seeded(2);
for (let next = performance.now(); ; next += everyMs) {
  if (everyMs > 0) await setTimeout(Math.max(0, next - performance.now()));
  const some = Array.from({ length: SKUS_AN_ANSWER }, () => names.next().value);
  const { claim, records } = await prepare(sql, some, 0.1, random);
  await applyAnswer(sql, claim, records, NEXT, { learning: LEARNING });
  process.send?.(records.length);
}
