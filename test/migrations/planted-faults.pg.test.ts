import { join } from 'node:path';
import { expect, test } from 'vitest';
import { connect, type Tx } from '../../src/store/connection/db.ts';
import { LISTS } from '../mutants/all.ts';
import { type Mutant, placed, planted, readMigrations } from '../mutants/mutant.ts';
import { createDatabase } from '../support/db.ts';

/*
 * A planted fault in a migration that Postgres rejects leaves every test without a database: each would fail, and
 * none would have shown that it detects the fault.
 */

const ROOT = join(import.meta.dirname, '../..');
const MIGRATIONS = readMigrations(ROOT);
const FAULTS = Object.values(LISTS)
  .flat()
  .map((listed) => placed(listed, MIGRATIONS));

const statementsOf = (text: string) => text.split('--> statement-breakpoint');

/** Returns why Postgres rejects the statement with the fault in it. All that it does is rolled back. */
async function refusalOf(tx: Tx, { breaks, file }: Mutant, statement: string): Promise<string[]> {
  const undone = new Error('undone');
  try {
    await tx.savepoint(async (inner) => {
      await inner.unsafe(statement);
      throw undone;
    });
  } catch (error) {
    if (error !== undone) return [`${breaks} (${file}): ${String(error)}`];
  }
  return [];
}

test('Postgres accepts each migration with each of its planted faults', async () => {
  const database = await createDatabase('empty');
  const sql = connect(database.url, { max: 1 });
  const refused: string[] = [];
  try {
    await sql`create schema catalog_internal`;
    await sql`create table catalog_internal.migrations (id serial primary key, hash text not null, created_at bigint)`;
    await sql.begin(async (tx) => {
      for (const [file, text] of MIGRATIONS) {
        const faults = FAULTS.filter((fault) => fault.file === file).map((fault) => ({
          fault,
          statements: statementsOf(planted(fault, text)),
        }));
        for (const [nth, statement] of statementsOf(text).entries()) {
          for (const { fault, statements } of faults) {
            const faulty = statements[nth];
            if (faulty !== undefined && faulty !== statement)
              refused.push(...(await refusalOf(tx, fault, faulty)));
          }
          await tx.unsafe(statement);
        }
      }
    });
  } finally {
    await sql.end({ timeout: 2 });
    await database.drop();
  }
  expect(refused).toEqual([]);
});
