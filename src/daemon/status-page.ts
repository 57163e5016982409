import { hostname } from 'node:os';
import type { Config } from '../config/config.ts';
import { within } from '../lib/clock.ts';
import { mirrorName } from '../lib/host-name.ts';
import { shownJson } from '../lib/json.ts';
import { asPageJson } from '../status/json.ts';
import type { Identity, PageView } from '../status/page.ts';
import { readRecentChanges } from '../store/history/changes.ts';
import { readSamples, type Sample } from '../store/status/samples.ts';
import type { SyncContext } from '../sync/context.ts';
import { VERSION } from '../version.ts';
import type { HealthReader } from './health.ts';
import type { PageSource } from './http/routes.ts';
import type { Parts } from './parts.ts';

/** However many readers there are, and however often they read, Postgres is asked at most this often. */
const VIEW_FOR_MS = 2000;
/** Less than an HTTP answer may take, so that a page shows what is wrong. */
const READ_WITHIN_MS = 4000;
const CHANGES = 20;
/** What the charts show, including their whole first column. There is a new sample once a minute. */
const SAMPLES_MS = 24 * 3_600_000 + 600_000;
const SAMPLES_FOR_MS = 10_000;

export interface StatusPageParts extends Pick<Parts, 'problems'> {
  readonly sync: Pick<SyncContext, 'sql' | 'clock'>;
  readonly config: {
    readonly partner: Pick<Config['partner'], 'baseUrl'>;
    readonly http: Pick<Config['http'], 'runbookUrlBase'>;
    readonly log: Pick<Config['log'], 'mirrorName'>;
  };
}

/** Identifies this mirror by those of its settings that are not secret. */
function identityOf({ config, sync }: StatusPageParts): Omit<Identity, 'upSeconds'> {
  const { host, port, database, path } = sync.sql.options;
  // The path of a Unix socket; the driver has false for none, whatever its types say.
  const server =
    typeof path === 'string' && path !== '' ? path : `${host.join(', ')} port ${port.join(', ')}`;
  return {
    name: mirrorName(config.log.mirrorName),
    host: hostname(),
    partner: new URL(config.partner.baseUrl).host,
    database: `${database} on ${server}`,
    version: VERSION,
  };
}

export function createStatusPages(
  parts: StatusPageParts,
  health: Pick<HealthReader, 'read'>,
): ReadonlyMap<string, PageSource> {
  const { sync, problems, config } = parts;
  const { sql, clock } = sync;
  const startedAt = clock.monotonic();
  const identity = identityOf(parts);
  let reading: { at: number; view: Promise<PageView> } | null = null;
  let sampled: { at: number; samples: readonly Sample[] } | null = null;

  async function samples(): Promise<readonly Sample[]> {
    const now = clock.monotonic();
    if (sampled === null || now - sampled.at > SAMPLES_FOR_MS)
      sampled = { at: now, samples: await within(readSamples(sql, SAMPLES_MS), READ_WITHIN_MS) };
    return sampled.samples;
  }

  async function read(): Promise<PageView> {
    const [mirror, changes, course] = await Promise.all([
      health.read(),
      within(readRecentChanges(sql, CHANGES), READ_WITHIN_MS).catch(() => []),
      // Without Postgres the samples read last are still true, and show how it came to this.
      samples().catch(() => sampled?.samples ?? []),
    ]);
    return {
      ...mirror,
      identity: { ...identity, upSeconds: (clock.monotonic() - startedAt) / 1000 },
      samples: course,
      changes,
      problems: problems(),
      runbookUrlBase: config.http.runbookUrlBase,
    };
  }

  function view(): Promise<PageView> {
    const now = clock.monotonic();
    if (reading === null || now - reading.at > VIEW_FOR_MS) reading = { at: now, view: read() };
    return reading.view;
  }

  return new Map<string, PageSource>([
    [
      '/',
      async () => {
        // Fifteen files with texts, styles and charts, loaded when somebody opens the page, not at every start.
        const [{ renderPage }, { POLICY }] = await Promise.all([
          import('../status/page.ts'),
          import('../status/page-assets.ts'),
        ]);
        return {
          type: 'text/html; charset=utf-8',
          body: renderPage(await view()),
          headers: { 'content-security-policy': POLICY, 'referrer-policy': 'no-referrer' },
        };
      },
    ],
    [
      '/status.json',
      async () => {
        const body = asPageJson(await view());
        return { type: 'application/json; charset=utf-8', body: `${shownJson(body)}\n`, headers: {} };
      },
    ],
  ]);
}
