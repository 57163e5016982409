import { type Sql, transaction } from './db.ts';

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

/** Stores what `judge` makes of the present cause, and has the whole schedule planned again. Null where nothing changes. */
export async function storeIncident(
  sql: Sql,
  judge: (present: IncidentCause | null) => IncidentCause | null,
): Promise<IncidentChange | null> {
  const [present] = await sql<
    [{ cause: IncidentCause | null }]
  >`select incident_because as cause from catalog_internal.live_plan`;
  if (judge(present.cause) === present.cause) return null;
  return await transaction(sql, async (tx) => {
    const [{ from, minutes }] = await tx<[{ from: IncidentCause | null; minutes: number }]>`
      select incident_because as "from",
        coalesce(round(extract(epoch from now() - incident_since) / 60), 0)::int as minutes
      from catalog_internal.live_plan for update`;
    const to = judge(from);
    if (to === from) return null;
    await tx`
      update catalog_internal.live_plan set incident_because = ${to}::text,
        incident_since = case when ${to}::text is not null then coalesce(incident_since, now()) end,
        incident_tried_at = now(), solved_at = null`;
    return { from, to, minutes };
  });
}
