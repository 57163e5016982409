import type { Sql, Tx } from '../connection/db.ts';
import { keyOf, type Member, type MutedChange } from './members.ts';

/** The keys of members that are muted. */
export async function readMuted(tx: Tx): Promise<ReadonlySet<string>> {
  const rows = await tx<Member[]>`select part, path from catalog_internal.muted_members`;
  return new Set(rows.map(keyOf));
}

/** Stores what is muted from now on, for every process, and forgets what is not any longer. */
export async function storeMuted(sql: Sql, { muted, unmuted }: MutedChange): Promise<void> {
  const parts = (members: readonly Member[]) => members.map(({ part }) => part);
  const paths = (members: readonly Member[]) => members.map(({ path }) => path);
  await sql`
    with heard as (
      delete from catalog_internal.muted_members m
      using unnest(${parts(unmuted)}::text[], ${paths(unmuted)}::text[]) as u(part, path) where m.part = u.part and m.path = u.path
    )
    insert into catalog_internal.muted_members (part, path)
    select * from unnest(${parts(muted)}::text[], ${paths(muted)}::text[]) on conflict do nothing`;
}
