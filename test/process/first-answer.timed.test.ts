import { expect, test } from 'vitest';
import { connect } from '../../src/store/db.ts';
import { codeBlocks } from '../docs/markdown.ts';
import { eventually } from '../support/eventually.ts';
import { startProgram, temporaryFolder } from '../support/process.ts';

/** As a newcomer has it: from `npm run demo` to the first row of the first query of the README. */
const AIM_MS = 10_000;

test('the first query of the README has its answer within ten seconds of the start of the demo', async () => {
  const [query] = codeBlocks('sql').filter(({ page }) => page === 'README.md');
  const startedAt = performance.now();
  const passed = () => Math.round(performance.now() - startedAt);
  await using demo = startProgram(['demo'], { DATA_DIR: await temporaryFolder() });
  const url = await eventually(() => /psql '(postgres:[^']+)'/.exec(demo.stdout.join('\n'))?.[1] ?? false, {
    what: 'the line for psql',
  });
  const addressesMs = passed();
  const sql = connect(String(url), { max: 1 });
  await eventually(async () => (await sql.unsafe(query?.text ?? '')).length > 0, {
    what: 'a row',
    every: 100,
  });
  const rowMs = passed();
  await sql.end({ timeout: 1 });
  await demo.end('SIGTERM');
  console.log(`addresses after ${addressesMs} ms, the first row after ${rowMs} ms`);
  expect(rowMs).toBeLessThan(AIM_MS);
});
