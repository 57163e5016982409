import { pauseStatus } from '../pace/pause.ts';
import { untilText } from '../status/pause.ts';
import type { Sql } from '../store/connection/db.ts';
import { readPause } from '../store/sellers/pause.ts';

/** That requests are paused, until when and by whom, as a line for people; null while they are not. */
export async function pausedLine(sql: Sql): Promise<string | null> {
  const { pause, now } = await readPause(sql);
  const status = pauseStatus(pause, now);
  return status === null ? null : `requests to the partner are paused ${untilText(status)} (by ${status.by})`;
}
