import { expect, test } from 'vitest';
import {
  type Found,
  type FoundSchema,
  judgeRoles,
  judgeSchemas,
  OccupiedError,
} from '../../src/store/setup/occupied.ts';

const NEW: Found = {
  role: 'mirror',
  schemas: [],
  ledger: 'none',
  skus: false,
  bare: false,
  shown: false,
  queueTables: false,
};
const schema = (more: Partial<FoundSchema>): FoundSchema => ({
  schema: 'catalog',
  owner: 'mirror',
  belongs: true,
  own: true,
  count: 0,
  objects: [],
  owners: [],
  objectsBelong: false,
  ...more,
});
const FULL = { count: 2, objects: ['table catalog.products', 'table catalog.skus'], owners: ['mirror'] };
const SHOP = { owner: 'shop', belongs: false, own: false };

test.each<[string, Partial<Found>, RegExp[]]>([
  ['a new database', {}, []],
  ['an empty schema made for the mirror', { schemas: [schema({})] }, []],
  ['what a first start that failed has left', { schemas: [schema({ schema: 'catalog_internal' })] }, []],
  [
    'tables of another application of the same role',
    { schemas: [schema(FULL)] },
    [/has table catalog\.products/],
  ],
  [
    'the tables of a mirror without their rows',
    { schemas: [schema(FULL), schema({ ...FULL, schema: 'catalog_internal' })], skus: true, bare: true },
    [/without its rows, as pg_dump --schema-only/],
  ],
  [
    'the same, of a mirror that has its rows',
    { schemas: [schema(FULL)], ledger: 'ours', skus: true, bare: true },
    [],
  ],
  [
    'the same, of another role',
    { schemas: [schema({ ...FULL, ...SHOP })], skus: true, bare: true },
    [/belongs to shop/],
  ],
  [
    'what sellers read, without what the mirror goes by',
    { schemas: [schema(FULL)], skus: true, shown: true },
    [/the schema catalog is a mirror's/],
  ],
  ['an empty schema of another role', { schemas: [schema(SHOP)] }, [/belongs to shop and is empty/]],
  [
    'an empty schema of another role, to a superuser',
    { schemas: [schema({ owner: 'shop', own: false })] },
    [/belongs to shop and is empty/],
  ],
  [
    'queues without a mirror: it was dropped',
    { schemas: [schema({ ...FULL, schema: 'catalog_queue' })], queueTables: true },
    [],
  ],
  [
    'something else where the queues go',
    { schemas: [schema({ ...FULL, schema: 'catalog_queue' })] },
    [/catalog_queue/],
  ],
  [
    'something else where the queues go, beside a mirror',
    { ledger: 'ours', skus: true, schemas: [schema(FULL), schema({ ...FULL, schema: 'catalog_queue' })] },
    [/catalog_queue/],
  ],
  ['a mirror', { ledger: 'ours', skus: true, schemas: [schema(FULL)] }, []],
  [
    'a mirror, to a superuser',
    { ledger: 'ours', skus: true, schemas: [schema({ ...FULL, own: false })] },
    [],
  ],
  [
    'a mirror of another role',
    { ledger: 'ours', skus: true, schemas: [schema({ ...FULL, ...SHOP })] },
    [/belongs to shop/],
  ],
  [
    'a mirror that is hidden',
    { ledger: 'hidden', schemas: [schema({ ...FULL, ...SHOP })] },
    [/belongs to shop/],
  ],
  ["another application's migrations", { ledger: 'foreign' }, [/catalog_internal\.migrations has none/]],
  ['a mirror whose schema was dropped', { ledger: 'ours' }, [/skus is gone: there is no schema catalog/]],
  [
    'a mirror in whose place another application is',
    { ledger: 'ours', schemas: [schema({ ...FULL, objects: ['view catalog.items'] })] },
    [/is gone: .* has view catalog\.items, and 1 more/],
  ],
])('%s', (_name, found, expected) => {
  const said = judgeSchemas({ ...NEW, ...found }).map(({ text }) => text);
  expect(said).toHaveLength(expected.length);
  for (const [n, pattern] of expected.entries()) expect(said[n]).toMatch(pattern);
});

test('no remedy drops or renames what another role owns or a mirror may be in', () => {
  const found = { ...NEW, ledger: 'hidden' as const, schemas: [schema({ ...FULL, ...SHOP })] };
  const [{ remedy } = { remedy: '' }] = judgeSchemas(found);
  expect(remedy).toMatch(
    /^if it is this mirror's, connect as shop or a member of it that inherits its privileges; if not, give the mirror a database/,
  );
  expect(remedy).not.toMatch(/DROP|RENAME/i);
});

test('the remedy for a schema given away is to give it back if all in it is still the mirror’s', () => {
  const found = { ...NEW, ledger: 'ours' as const, skus: true };
  const given = schema({ ...FULL, ...SHOP, objectsBelong: true });
  expect(judgeSchemas({ ...found, schemas: [given] })).toMatchObject([
    { remedy: 'ALTER SCHEMA catalog OWNER TO "mirror"' },
  ]);
  expect(judgeSchemas({ ...found, ledger: 'hidden', schemas: [given] })).toMatchObject([
    { kind: 'ledger-hidden', remedy: expect.stringContaining('catalog_internal.migrations TO "mirror"') },
  ]);
});

test('the error contains each problem once, and each remedy once', () => {
  const [one, two] = [
    { kind: 'schema-of-another' as const, text: 'A', remedy: 'R' },
    { kind: 'role-of-another' as const, text: 'B', remedy: 'R' },
  ];
  const error = new OccupiedError([one, two]);
  expect(error).toMatchObject({ kind: 'schema-of-another', hint: 'R' });
  expect(error.message).toBe('nothing was made or changed in the database:\n  A\n  B');
});

test('roles that are more than readers are named with what to revoke', () => {
  const role = { role: 'catalog_reader', canLogin: false, members: [] };
  expect(judgeRoles([{ ...role, powers: [] }])).toEqual([]);
  expect(judgeRoles([{ ...role, powers: ['SUPERUSER', 'CREATEDB'] }])).toMatchObject([
    {
      kind: 'role-of-another',
      remedy: expect.stringContaining('ALTER ROLE catalog_reader NOSUPERUSER NOCREATEDB') as string,
    },
  ]);
  expect(judgeRoles([{ ...role, powers: ['a member of mirror'] }])).toMatchObject([
    { remedy: expect.stringContaining('REVOKE') as string },
  ]);
});
