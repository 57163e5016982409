import { createHash } from 'node:crypto';
import type { Batch } from './batch.ts';
import { shownPosition } from './change.ts';

/**
 * What is posted for a batch: its id, and the body in the form that Standard Webhooks recommends. Both are the same
 * at every attempt, also after a restart. An id has no full stop, because the signature's parts are joined by them.
 * Pure.
 */
export function messageOf(
  follower: string,
  batch: Batch,
): { readonly messageId: string; readonly body: string } {
  const { first, last, lines, at, copy } = batch;
  const data = [
    `"follower":${JSON.stringify(follower)}`,
    `"first":${JSON.stringify(shownPosition(first))}`,
    `"last":${JSON.stringify(shownPosition(last))}`,
    `"copy":${copy}`,
    ...(batch.copyBegins === true ? ['"copy_begins":true'] : []),
    `"changes":[${lines.join(',')}]`,
  ];
  const body = `{"type":"catalog.changes","timestamp":"${at.toISOString()}","data":{${data.join(',')}}}`;
  // All of the first copy has one position: there the content tells batches apart.
  const part = copy
    ? `copy_${createHash('sha256').update(body).digest('base64url').slice(0, 22)}`
    : String(last);
  return { messageId: `msg_${follower}_${first}_${part}`, body };
}
