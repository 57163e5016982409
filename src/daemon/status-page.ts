import { shownJson } from '../lib/shown-json.ts';
import { within } from '../queues/backend.ts';
import { asJson } from '../status/json.ts';
import { POLICY } from '../status/page-assets.ts';
import { type PageView, renderPage } from '../status/page.ts';
import { readRecentChanges } from '../store/changes.ts';
import type { SyncContext } from '../sync/context.ts';
import type { Parts } from './parts.ts';
import type { HealthReader } from './health.ts';
import type { Page } from './http/routes.ts';
import { VERSION } from '../version.ts';

/** However many readers there are, and however often they read: Postgres is asked this often at most. */
const VIEW_FOR_MS = 2000;
/** Below what an HTTP answer may take, so that a page says what is wrong. */
const READ_WITHIN_MS = 4000;
const CHANGES = 20;

/** The status page and the same as JSON, by path. */
export function createStatusPages(
  {
    sync: { sql, clock },
    problems,
  }: Pick<Parts, 'problems'> & { readonly sync: Pick<SyncContext, 'sql' | 'clock'> },
  health: Pick<HealthReader, 'read'>,
): ReadonlyMap<string, Page> {
  let reading: { at: number; view: Promise<PageView> } | null = null;

  async function read(): Promise<PageView> {
    const [mirror, changes] = await Promise.all([
      health.read(),
      within(readRecentChanges(sql, CHANGES), READ_WITHIN_MS).catch(() => []),
    ]);
    return { ...mirror, changes, problems: problems(), version: VERSION };
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
        const { status, health: judged, now, changes, problems: told } = await view();
        const body =
          status === null
            ? { ...judged, at: now, problems: told }
            : { ...asJson(status, judged, now), changes, problems: told };
        return { type: 'application/json; charset=utf-8', body: `${shownJson(body)}\n`, headers: {} };
      },
    ],
  ]);
}
