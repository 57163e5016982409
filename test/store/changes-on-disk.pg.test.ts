import { describe, expect, test } from 'vitest';
import { useStore } from './support.ts';

const store = useStore();

describe.each([
  ['history is written', 'insert into catalog.price_history select * from catalog.price_history where false'],
  ['changes are locked', 'select catalog_internal.lock_changes()'],
])('a transaction in which %s', (_, statement) => {
  test.each([
    ['off', 'local'],
    ['local', 'local'],
    ['on', 'on'],
    ['remote_apply', 'remote_apply'],
  ])(
    'is on disk when it becomes visible if the server has synchronous_commit = %s: %s',
    async (told, meant) => {
      const meantAtCommit = await store.sql.begin(async (tx) => {
        await tx.unsafe(`set local synchronous_commit = ${told}`);
        await tx.unsafe(statement);
        const [row] = await tx<[{ value: string }]>`select current_setting('synchronous_commit') as value`;
        return row.value;
      });
      expect(meantAtCommit).toBe(meant);
    },
  );
});
