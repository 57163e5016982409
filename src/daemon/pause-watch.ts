import { holds, pauseNews } from '../pace/pause.ts';
import type { Sql } from '../store/connection/db.ts';
import { type Pause, readPause } from '../store/sellers/pause.ts';
import type { Log } from '../telemetry/log/logger.ts';

/** Checks whether somebody has paused or resumed requests, and logs it once. What goes by the pause are the permits. */
export function createPauseWatch(sql: Sql, log: Log): () => Promise<void> {
  let before: Pause | null = null;
  const iso = (ms: number) => new Date(ms).toISOString();
  return async () => {
    const { pause, now } = await readPause(sql);
    const news = pauseNews(before, pause, now);
    before = holds(pause, now) ? pause : null;
    if (news === null) return;
    const { since, until, by, resumedBy } = news.pause;
    if (news.what === 'paused')
      log.info({
        event: 'requests.paused',
        by,
        pausedSince: iso(since),
        pausedUntil: until === null ? null : iso(until),
      });
    else
      log.info({
        event: 'requests.resumed',
        by: resumedBy,
        pausedSince: iso(since),
        lastedSeconds: Math.round((now - since) / 1000),
      });
  };
}
