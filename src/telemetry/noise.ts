import type { Clock } from '../lib/clock.ts';
import type { Notice } from '../store/db.ts';
import { type Log, sparingly } from './logger.ts';
import { createTroubles } from './troubles.ts';

/** What Postgres tells its client beside answers: warnings are lines, the same one rarely; notices only at debug. */
export function noticeLines(log: Log, clock: Clock): (notice: Notice) => void {
  const troubles = createTroubles(clock);
  return ({ severity, code, message: text }) => {
    if (severity !== 'WARNING') return log.debug({ event: 'postgres.notice', severity, code, text });
    const { say, ...facts } = troubles.again(code ?? '', text ?? '');
    sparingly(log, 'warn', say, { event: 'postgres.notice', severity, code, text, ...facts });
  };
}

/** What libraries print and Node.js warns of. The same text comes rarely. */
export function noiseLines(log: Log, clock: Clock): (from: string, text: string) => void {
  const troubles = createTroubles(clock);
  return (from, text) => {
    const { say, ...facts } = troubles.again(`${from} ${text.slice(0, 200)}`, '');
    sparingly(log, 'warn', say, { event: 'library.noise', from, text, ...facts });
  };
}
