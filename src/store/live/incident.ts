import { type Queryable, type Sql, transaction } from '../connection/db.ts';

/** The evidence for an incident: the manifest route's counts, or calls whose snapshot-priced SKUs are deferred. */
export type IncidentCause = 'live-count' | 'deferrals';

/** The current incident; times are epoch milliseconds. */
export interface Incident {
  readonly because: IncidentCause;
  readonly since: number;
  /** When a call, or counts, last showed whether it is over; the beginning before the first time. */
  readonly triedAt: number;
}

export interface IncidentChange {
  readonly from: IncidentCause | null;
  readonly to: IncidentCause | null;
  /** How long the former state of an incident lasted, in minutes; 0 at its beginning. */
  readonly minutes: number;
}

interface PresentIncident {
  readonly from: IncidentCause | null;
  readonly minutes: number;
}

/**
 * Stores what `judge` makes of the present cause, and of the minutes that it has lasted, and has the whole schedule
 * planned again. Null where nothing changes.
 */
export async function storeIncident(
  sql: Sql,
  judge: (present: IncidentCause | null, minutes: number) => IncidentCause | null,
): Promise<IncidentChange | null> {
  const read = (queryable: Queryable) => queryable`
    select incident_because as "from", coalesce(round(extract(epoch from now() - incident_since) / 60), 0)::int as minutes
    from catalog_internal.live_plan`;
  const [present] = await sql<[PresentIncident]>`${read(sql)}`;
  if (judge(present.from, present.minutes) === present.from) return null;
  return await transaction(sql, async (tx) => {
    const [{ from, minutes }] = await tx<[PresentIncident]>`${read(tx)} for update`;
    const to = judge(from, minutes);
    if (to === from) return null;
    await tx`
      update catalog_internal.live_plan set incident_because = ${to}::text,
        incident_since = case when ${to}::text is not null then coalesce(incident_since, now()) end,
        incident_tried_at = now(), solved_at = null`;
    return { from, to, minutes };
  });
}

/** Counts have just said whether an incident that counts began is over: no call need try it for a while. */
export async function noteCounted(sql: Sql): Promise<void> {
  await sql`update catalog_internal.live_plan set incident_tried_at = now() where incident_because = 'live-count'`;
}
