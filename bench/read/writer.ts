import { applyAnswer } from '../../src/store/answers.ts';
import { connect } from '../../src/store/db.ts';
import { NEXT, prepare, scattered, SKUS_AN_ANSWER } from '../apply/answer.ts';
import { seeded } from '../freshness/random.ts';

/** Applies answers one after the other, a tenth of their prices changed, until its parent goes: node writer.ts URL SKUS. */
const [url = '', skus = '0'] = process.argv.slice(2);
process.once('disconnect', () => process.exit(0));
const sql = connect(url, { max: 1 });
const names = scattered(Number(skus));
const random = seeded(2);
for (;;) {
  const some = Array.from({ length: SKUS_AN_ANSWER }, () => names.next().value);
  const { claim, records } = await prepare(sql, some, 0.1, random);
  await applyAnswer(sql, claim, records, NEXT);
  process.send?.(records.length);
}
