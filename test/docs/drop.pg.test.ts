import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { codeBlocks } from './markdown.ts';

const [morning = '', evening = ''] = codeBlocks('sql').flatMap(({ text }) =>
  text.includes('shop.before_drop') ? [text] : [],
);

let database: TestDatabase;
let sql: Sql;
/** Roles belong to the server, which other tests share, so the name is random. */
const SERVICE = `service_${randomBytes(4).toString('hex')}`;

beforeAll(async () => {
  database = await createDatabase('migrated');
  sql = connect(database.url, { max: 1 });
  await sql.unsafe(`create role ${SERVICE} in role catalog_reader, catalog_watcher`);
  await sql.unsafe(`create schema shop authorization ${SERVICE}`);
});
afterAll(async () => {
  await sql.unsafe(`drop schema shop cascade; drop role ${SERVICE}`);
  await sql.end({ timeout: 2 });
  await database.drop();
});

interface Listed {
  readonly weight: number;
  readonly max_age: string | null;
  readonly note: string | null;
}

const listed: fc.Arbitrary<Listed | null> = fc.option(
  fc.record({
    weight: fc.constantFrom(0.5, 1, 3, 20),
    max_age: fc.constantFrom(null, '00:10:00', '00:02:00'),
    note: fc.constantFrom(null, 'drop', 'in the window'),
  }),
);
/** A SKU of the drop or of another model, its entry in the watchlist, and what happens to that during the day. */
interface Sku {
  readonly model: string;
  readonly before: Listed | null;
  readonly by_day: string;
}
const sku: fc.Arbitrary<Sku> = fc.record({
  model: fc.constantFrom('Dunk Low', 'Dunk High'),
  before: listed,
  by_day: fc.constantFrom('nothing', 'nothing', 'removed', 'changed'),
});

const CHANGED: Listed = { weight: 7, max_age: '01:00:00', note: 'ours' };
const nameOf = (at: number) => `S-${at}`;

/** Returns the expected entry in the evening: the previous one, unless somebody else has changed it since. */
function expected({ model, before, by_day }: Sku): Listed | null {
  const isListedByDay = model === 'Dunk Low' || before !== null;
  if (by_day === 'removed') return null;
  return by_day === 'changed' && isListedByDay ? CHANGED : before;
}

async function fill(tx: Sql, skus: readonly Sku[]): Promise<void> {
  for (const [at, { model, before }] of skus.entries()) {
    await tx`insert into catalog.skus (sku, in_manifest) values (${nameOf(at)}, true)`;
    await tx`
      insert into catalog.products (sku, brand, model, product, refreshed_at, changed_at)
      values (${nameOf(at)}, 'Nike', ${model}, '{}', now(), now())`;
    if (before !== null) await tx`insert into catalog.watchlist ${tx({ sku: nameOf(at), ...before })}`;
  }
}

test('the evening statements of docs/steering.md undo exactly what the morning ones did for a drop', async () => {
  expect(evening).toContain('DROP TABLE');
  await fc.assert(
    fc.asyncProperty(fc.array(sku, { minLength: 1, maxLength: 8 }), async (skus) => {
      const undo = new Error('undone');
      let left: readonly unknown[] = [];
      let byDay: readonly unknown[] = [];
      const day = sql.begin(async (begun) => {
        const tx = begun as unknown as Sql;
        await fill(tx, skus);
        await tx.unsafe(`set local role ${SERVICE}`);
        await tx.unsafe(morning);
        byDay =
          await tx`select sku from catalog.watchlist where weight = 20 and note = 'drop' and max_age = '2 minutes'`;
        for (const [at, { by_day }] of skus.entries()) {
          if (by_day === 'removed') await tx`delete from catalog.watchlist where sku = ${nameOf(at)}`;
          if (by_day === 'changed')
            await tx`update catalog.watchlist set ${tx({ ...CHANGED })} where sku = ${nameOf(at)}`;
        }
        await tx.unsafe(evening);
        left = await tx`select sku, weight, max_age::text, note from catalog.watchlist order by sku`;
        throw undo;
      });
      await expect(day).rejects.toBe(undo);
      expect(byDay.length).toBeGreaterThanOrEqual(skus.filter(({ model }) => model === 'Dunk Low').length);
      expect(left).toEqual(
        skus.flatMap((one, at) => {
          const wanted = expected(one);
          return wanted === null ? [] : [{ sku: nameOf(at), ...wanted }];
        }),
      );
    }),
    { numRuns: 60 },
  );
});
