import { sampleOf } from '../status/sample.ts';
import type { Sql } from '../store/connection/db.ts';
import { readPresent, writeSample } from '../store/status/samples.ts';
import type { HealthReader } from './health.ts';

/**
 * Returns what keeps the present minute's sample of the status where nobody has yet, so that several daemons take one
 * a minute together. To be called several times a minute: all but one of the calls ask for one row, and notice a
 * back-off that is over before the next sample.
 */
export function createSampler(sql: Sql, health: Pick<HealthReader, 'read'>): () => Promise<void> {
  let wasRefused = false;
  return async () => {
    const { sampled, refused } = await readPresent(sql);
    wasRefused ||= refused;
    if (sampled) return;
    const { status, health: judged, now } = await health.read();
    if (status === null) return;
    const sample = sampleOf(status, judged.state, now);
    await writeSample(sql, { ...sample, backingOff: sample.backingOff || wasRefused });
    wasRefused = refused;
  };
}
