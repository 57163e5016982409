import { loadConfig } from '../../src/config/config.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPartnerClient } from '../../src/partner/client.ts';
import { createObservers } from '../../src/store/answer/observers.ts';
import { connect } from '../../src/store/connection/db.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import { syncManifest } from '../../src/sync/manifest.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { UNPACED } from '../../test/support/unpaced.ts';

/*
 * The mirror's own way, in a process of its own: the manifest asked for, downloaded, read, staged and merged, as the
 * daemon does it. In: the database's URL and the upstream's. Tells its parent how long that took and the most memory
 * it ever held.
 */

export interface Ended {
  readonly ms: number;
  readonly rssMb: number;
}

const MINUTE = 60_000;
const [databaseUrl = '', upstreamUrl = ''] = process.argv.slice(2);
const sql = connect(databaseUrl, { max: 2 });
const baseUrl = new URL(upstreamUrl);
const config = loadConfig(
  {
    PARTNER_BASE_URL: upstreamUrl,
    PARTNER_API_KEY: 'key',
    PARTNER_SECRET: 'secret',
    PARTNER_DOWNLOAD_TIMEOUT: '1h',
  },
  () => '',
);
const client = createPartnerClient({
  baseUrl,
  credentials: () => ({ apiKey: 'key', secret: 'secret' }),
  timeoutMs: MINUTE,
  bodyKey: 'skus',
  priceFields: ['price'],
  skuField: 'sku',
  allowInsecure: false,
  userAgent: 'bench',
  clock: systemClock,
});

const startedAt = performance.now();
const outcome = await syncManifest(
  {
    sql,
    databaseUrl: () => databaseUrl,
    client,
    pacer: UNPACED,
    clock: systemClock,
    random: () => 0.5,
    observers: createObservers(systemClock),
    floors: new DueFloors(systemClock),
    recent: new RecentAnswers(),
    tracer: NO_TRACER,
    emit: () => undefined,
    settings: { ...config, callsPerMinute: 120 },
  },
  { run: '1', failures: 0, refusals: 0 },
);
const ms = performance.now() - startedAt;
if (outcome.kind !== 'done') throw new Error(`no baseline: ${JSON.stringify(outcome)}`);
process.send?.({ ms, rssMb: process.resourceUsage().maxRSS / 1024 } satisfies Ended);
await client.close();
await sql.end({ timeout: 5 });
process.disconnect?.();
