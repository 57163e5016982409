import { type Queryable, type Sql, transaction } from '../connection/db.ts';

/** The evidence for an incident: the manifest route's counts, or calls whose snapshot-priced SKUs are deferred. */
export type IncidentCause = 'live-count' | 'deferrals';

/** The current incident; times are epoch milliseconds. */
export interface Incident {
  readonly because: IncidentCause;
  readonly since: number;
  /** When a call last tried whether it is over; the beginning before the first time. */
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
  /** A trial call has ended the last one, and no counts have agreed with it since. */
  readonly disproved: boolean;
}

/**
 * Stores what `judge` makes of the present state, and has the whole schedule planned again. Null where nothing changes.
 * Without an incident, `incident_tried_at` is when a trial call disproved the last one.
 */
export async function storeIncident(
  sql: Sql,
  judge: (present: PresentIncident) => IncidentCause | null,
): Promise<IncidentChange | null> {
  const read = (queryable: Queryable) => queryable`
    select incident_because as "from", coalesce(round(extract(epoch from now() - incident_since) / 60), 0)::int as minutes,
      incident_because is null and incident_tried_at is not null as disproved
    from catalog_internal.live_plan`;
  const [present] = await sql<[PresentIncident]>`${read(sql)}`;
  if (judge(present) === present.from) return null;
  return await transaction(sql, async (tx) => {
    const [now] = await tx<[PresentIncident]>`${read(tx)} for update`;
    const { from, minutes } = now;
    const to = judge(now);
    if (to === from) return null;
    await tx`
      update catalog_internal.live_plan set incident_because = ${to}::text,
        incident_since = case when ${to}::text is not null then coalesce(incident_since, now()) end,
        incident_tried_at = case when ${to}::text is not null then now() end, solved_at = null`;
    return { from, to, minutes };
  });
}

/** The counts are believed again, whatever a trial call has shown of earlier ones. */
export async function forgetTrial(sql: Sql): Promise<void> {
  await sql`
    update catalog_internal.live_plan set incident_tried_at = null
    where incident_because is null and incident_tried_at is not null`;
}
