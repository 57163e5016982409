import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { eventually } from '../support/eventually.ts';
import { FILLED, holds, type Program, startProgram, temporaryFolder } from '../support/process.ts';
import { codeBlocks, spokenQueries } from './markdown.ts';

/**
 * The market of a demo needs several snapshots, one every 15 seconds, until everything that the pages query has
 * happened.
 */
const WITHIN_MS = 150_000;

const statements = [...codeBlocks('sql'), ...spokenQueries()];
let demo: Program;
let sql: Sql;

/** Starts the demo unchanged: nothing is added to its market, and its own mirror is queried. */
beforeAll(async () => {
  demo = startProgram(['demo'], { DATA_DIR: await temporaryFolder(() => {}) });
  const url = await eventually(
    () => {
      const [, found] = /psql '(postgres:[^']+)'/.exec(demo.stdout.join('\n')) ?? [];
      if (found === undefined) throw new Error(demo.stderr.join('\n'));
      return found;
    },
    { what: 'the line for psql' },
  );
  sql = connect(url, { max: 2 });
  await eventually(() => holds(sql, FILLED), { what: 'the initial load', within: WITHIN_MS, every: 500 });
}, 2 * WITHIN_MS);

afterAll(async () => {
  await sql.end({ timeout: 1 });
  await demo.end('SIGTERM');
});

/** Returns the role that a block's statements need; only a change of privileges needs the owner. */
function roleOf(block: string): string | null {
  if (/^GRANT\b/m.test(block)) return null;
  if (/\bshop\./.test(block)) return 'your_service';
  const steers = /catalog\.(?:watchlist|scope|take_request|refresh\()/.test(block);
  if (steers && /\bFROM catalog\.(?:products|prices)\b/.test(block)) return 'your_service';
  return steers ? 'catalog_watcher' : 'catalog_reader';
}

/** Runs a statement that cannot be rolled back, because it commits. */
async function call(statement: string): Promise<void> {
  const own = await sql.reserve();
  try {
    await own`set role catalog_watcher`;
    await own.unsafe(statement);
  } finally {
    await own`reset role`;
    own.release();
  }
}

/** Runs a block's statements and rolls them back. Returns how many rows each SELECT among them found. */
async function rowsFound(block: string): Promise<number[]> {
  if (/^CALL\b/.test(block)) {
    await call(block);
    return [];
  }
  const role = roleOf(block);
  const undo = new Error('undone');
  let found: number[] = [];
  const attempt = sql.begin(async (tx) => {
    await tx.unsafe('create role your_service in role catalog_reader, catalog_watcher');
    await tx.unsafe('create schema shop authorization your_service');
    if (role !== null) await tx.unsafe(`set local role ${role}`);
    // What an earlier block of the page created.
    for (const [, table] of block.matchAll(/^DROP TABLE (\S+);/gm))
      await tx.unsafe(statements.find(({ text }) => text.includes(`CREATE TABLE ${table} AS`))?.text ?? '');
    const results = (await tx.unsafe(block)) as unknown as { command?: string; count: number }[];
    // For one statement these are its rows, for several a list of such results.
    const each = Array.isArray(results[0]) ? results : [results as unknown as (typeof results)[0]];
    found = each.flatMap((result) => (result?.command === 'SELECT' ? [result.count] : []));
    throw undo;
  });
  await attempt.catch((error: unknown) => {
    if (error !== undo) throw error;
  });
  return found;
}

describe('SQL of the documents', () => {
  test('grant a service all that it needs to ask for its requests', async () => {
    const undo = new Error('undone');
    const granted = statements.filter(({ text }) => /^GRANT\b.*\byour_service\b/m.test(text));
    expect(granted.length).toBeGreaterThan(0);
    for (const { text } of granted)
      await expect(
        sql.begin(async (tx) => {
          await tx`create role your_service`;
          await tx.unsafe(text);
          await tx`set local role your_service`;
          await tx`select catalog.take_request('orders')`;
          throw undo;
        }),
      ).rejects.toBe(undo);
  });

  test('exist', () => expect(statements.length).toBeGreaterThan(4));

  test.each(statements)(
    '$page:$line runs on the demo with its intended role, and finds rows',
    async (block) => {
      await eventually(async () => expect(await rowsFound(block.text)).not.toContain(0), {
        what: block.text,
        within: WITHIN_MS,
        every: 1000,
      });
    },
  );
});
