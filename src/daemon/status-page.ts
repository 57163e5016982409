import type { Clock } from '../lib/clock.ts';
import { within } from '../queues/backend.ts';
import { asJson } from '../status/json.ts';
import { POLICY } from '../status/page-assets.ts';
import { type PageView, renderPage } from '../status/page.ts';
import { readStatus, type StatusParts } from '../status/status.ts';
import { judge, type Reason, healthOf } from '../status/health.ts';
import type { Sql } from '../store/db.ts';
import { readRecentChanges } from '../store/changes.ts';
import type { Log } from '../telemetry/log/logger.ts';
import type { Problem } from '../telemetry/log/problems.ts';
import type { Page } from './http-server.ts';
import { VERSION } from '../version.ts';

export interface StatusPageParts extends StatusParts {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly problems: () => readonly Problem[];
  /** What speaks against this daemon's health that Postgres does not know of. */
  readonly ownReasons: () => readonly Reason[];
  readonly log: Log;
}

/** However many readers there are, and however often they read: Postgres is asked this often at most. */
const VIEW_FOR_MS = 2000;
/** Below what an HTTP answer may take, so that a page says what is wrong. */
const READ_WITHIN_MS = 4000;
const CHANGES = 20;

/** The status page and the same as JSON, by path. */
export function createStatusPages(parts: StatusPageParts): ReadonlyMap<string, Page> {
  const { sql, clock, problems, ownReasons, log } = parts;
  let reading: { at: number; view: Promise<PageView> } | null = null;

  async function read(): Promise<PageView> {
    const now = () => new Date(clock.now());
    const rest = { problems: problems(), version: VERSION };
    try {
      const [status, changes] = await within(
        Promise.all([readStatus(sql, parts), readRecentChanges(sql, CHANGES)]),
        READ_WITHIN_MS,
      );
      return { ...rest, status, changes, health: judge(status, now(), ownReasons()), now: now() };
    } catch (error) {
      // Drivers' messages are not for a page.
      log.debug({ event: 'status.unread', err: error });
      const text = 'the status cannot be read: Postgres does not answer';
      const health = healthOf([{ level: 'broken', text }, ...ownReasons()]);
      return { ...rest, status: null, changes: [], health, now: now() };
    }
  }

  function view(): Promise<PageView> {
    const now = clock.monotonic();
    if (reading === null || now - reading.at > VIEW_FOR_MS) reading = { at: now, view: read() };
    return reading.view;
  }

  return new Map<string, Page>([
    [
      '/',
      async () => ({
        type: 'text/html; charset=utf-8',
        body: renderPage(await view()),
        headers: { 'content-security-policy': POLICY, 'referrer-policy': 'no-referrer' },
      }),
    ],
    [
      '/status.json',
      async () => {
        const { status, health, now, changes, problems: told } = await view();
        const body =
          status === null
            ? { ...health, at: now, problems: told }
            : { ...asJson(status, health, now), changes, problems: told };
        return { type: 'application/json; charset=utf-8', body: `${JSON.stringify(body)}\n`, headers: {} };
      },
    ],
  ]);
}
