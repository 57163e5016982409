import { expect, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { readSnapshotHolder, snapshotHolderText } from '../../src/store/status/holders.ts';
import { useStore } from './support.ts';

const store = useStore();

test('the session that holds a snapshot for long is named', async () => {
  const { sql } = store;
  expect(await readSnapshotHolder(sql, 0, 0)).toBeNull();
  const role = `reporter_${process.pid}`;
  const url = new URL(store.url);
  await sql.unsafe(`create role ${role} login password 'x'`);
  Object.assign(url, { username: role, password: 'x' });
  url.searchParams.set('application_name', 'report');
  const reporter = connect(url.href, { max: 1 });
  try {
    await reporter.begin('isolation level repeatable read', async (tx) => {
      const [{ pid }] = await tx<[{ pid: number }]>`select pg_backend_pid() as pid from pg_class limit 1`;
      await sql`create table public.later (n int)`;
      const found = await readSnapshotHolder(sql, 0);
      expect(found).toMatchObject({ kind: 'session', pid, role });
      expect(snapshotHolderText(found as NonNullable<typeof found>)).toMatch(
        /^process \d+ of Postgres \(role reporter_\d+.* has held a snapshot for \d+s$/,
      );
      expect(await readSnapshotHolder(sql, 3600)).toBeNull();
    });
  } finally {
    await reporter.end({ timeout: 2 });
    await sql.unsafe(`drop table if exists public.later; drop role ${role}`);
  }
  expect(await readSnapshotHolder(sql, 0, 0)).toBeNull();
});

test('a role that cannot see other sessions names the holder too, after so many transactions', async () => {
  const { sql } = store;
  const role = `plain_${process.pid}`;
  const url = Object.assign(new URL(store.url), { username: role, password: 'x' });
  await sql.unsafe(
    `create role ${role} login password 'x'; grant usage on schema catalog_internal to ${role}`,
  );
  const plain = connect(url.href, { max: 1 });
  try {
    await sql.begin('isolation level repeatable read', async (tx) => {
      const [{ pid, user }] = await tx<[{ pid: number; user: string }]>`
        select pg_backend_pid() as pid, current_user::text as user from pg_class limit 1`;
      await sql`create table public.later (n int)`;
      expect(await readSnapshotHolder(plain, 0, 0)).toMatchObject({
        kind: 'session',
        pid,
        role: user,
        seconds: null,
      });
      // A snapshot is as old as the oldest transaction of the whole server, which may belong to another test file.
      expect(await readSnapshotHolder(plain, 0, 1e9)).toBeNull();
    });
    expect(await readSnapshotHolder(plain, 0, 0)).toBeNull();
  } finally {
    await plain.end({ timeout: 2 });
    await sql.unsafe(`drop table if exists public.later; drop owned by ${role}; drop role ${role}`);
  }
});

test('prepared transactions and replication slots are described by their names', () => {
  const holder = { pid: null, role: 'shop', name: 'import', transactions: 30_000, deadVersions: 0 };
  expect(snapshotHolderText({ ...holder, kind: 'prepared', seconds: 7200 })).toBe(
    'the prepared transaction import (role shop) has held a snapshot for 2.0h',
  );
  expect(snapshotHolderText({ ...holder, kind: 'slot', seconds: null })).toBe(
    'the replication slot import has held a snapshot for 30000 transactions',
  );
});
