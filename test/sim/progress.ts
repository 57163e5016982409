import { readStatusOf } from '../../src/cli/status.ts';
import { createStatusPages } from '../../src/daemon/status-page.ts';
import type { Reason } from '../../src/status/reason.ts';
import { settingsWith } from '../support/settings.ts';
import type { Day } from './day.ts';
import type { Raw } from './partner.ts';
import type { Rig } from './rig.ts';

const MINUTE = 60_000;
/** DELTA_INTERVAL of the day, and two more triggers: one may have come just too early. */
const DELTA_WITHIN_MS = 7 * MINUTE;
/** Due SKUs are asked for at the next trigger. The pace of a window and a retry come on top. */
const PRICES_WITHIN_MS = 2 * MINUTE;
/** SKUs that the partner defers or answers with an error wait for a while. */
const ANY_PRICE_WITHIN_MS = 30 * MINUTE;

/**
 * Decides whether work continues, by what the partner has truly answered and by what is due, independently of the
 * mirror's own judgement.
 */
export class Progress {
  readonly #rig: Rig;
  #deltaAt: number;
  #pricesAt: number;
  #dueSince: number | null = null;
  #waitingSince: number | null = null;

  constructor(rig: Rig) {
    this.#rig = rig;
    this.#deltaAt = rig.time.at;
    this.#pricesAt = rig.time.at;
  }

  /** Notes an answer to the daemon. */
  answered(route: string, raw: Raw): void {
    if ('failed' in raw || raw.status !== 200 || typeof raw.body !== 'object' || raw.body === null) return;
    const { results = {}, not_found: unknown = [] } = raw.body as { results?: object; not_found?: unknown[] };
    if (route === 'delta' || route === 'manifest') this.#deltaAt = this.#rig.time.at;
    if (route === 'bulk' && Object.keys(results).length + unknown.length > 0)
      this.#pricesAt = this.#rig.time.at;
  }

  /** Returns what has stopped, or null if everything continues. */
  async standsStill(): Promise<string | null> {
    const { time, sql } = this.#rig;
    const [{ due, waiting }] = await sql<[{ due: boolean; waiting: boolean }]>`
      select count(*) filter (where held_until is null) > 0 as due, count(*) > 0 as waiting
      from catalog_internal.due where due_at <= now() and not live`;
    this.#dueSince = due ? (this.#dueSince ?? time.at) : null;
    this.#waitingSince = waiting ? (this.#waitingSince ?? time.at) : null;
    const without = (since: number | null) =>
      since === null ? 0 : time.at - Math.max(since, this.#pricesAt);
    const delta = time.at - this.#deltaAt;
    const found = [
      delta > DELTA_WITHIN_MS ? `no delta for ${delta / MINUTE} min` : null,
      without(this.#dueSince) > PRICES_WITHIN_MS
        ? `SKUs due and no price for ${without(this.#dueSince) / MINUTE} min`
        : null,
      without(this.#waitingSince) > ANY_PRICE_WITHIN_MS
        ? `SKUs waiting and no price for ${without(this.#waitingSince) / MINUTE} min`
        : null,
    ].filter((text) => text !== null);
    return found.length === 0 ? null : found.join(', ');
  }
}

/** The state that each of the five reports, and the reasons. */
export interface Said {
  readonly states: Readonly<Record<'readyz' | 'status' | 'status.json' | 'page' | 'metric', string>>;
  readonly reasons: readonly Reason[];
}

const CONFIG = settingsWith({});

/** Collects what all five report of the day's mirror at this moment. */
export async function sayAll(day: Day): Promise<Said> {
  let at = 0;
  const clock = { ...day.clock, monotonic: () => (at += MINUTE) };
  const pages = createStatusPages(
    { config: CONFIG, sync: { sql: day.sql, clock }, problems: () => [] },
    day.health,
  );
  const page = async (path: string) => String((await pages.get(path)?.())?.body);
  const [ready, html, json, metrics, status] = await Promise.all([
    day.health.ready(),
    page('/'),
    page('/status.json'),
    day.health.metrics(),
    // If Postgres is down, the command itself reports it.
    readStatusOf(day.sql, CONFIG as never).then(
      ({ health }) => health.state,
      () => 'broken',
    ),
  ]);
  const answer = ready as unknown as { state: string; reasons: Reason[] };
  return {
    states: {
      readyz: answer.state,
      status,
      'status.json': (JSON.parse(json) as { state: string }).state,
      page: /<b id="state">(\w+)<\/b>/.exec(html)?.[1] ?? '',
      metric: /^catalog_mirror_state\{state="([^"]+)"\} 1$/m.exec(metrics)?.[1] ?? '',
    },
    reasons: answer.reasons,
  };
}
