import type { TaskReport } from '../queues/task-run.ts';
import { refuses } from '../partner/pacer.ts';
import type { Outcome } from '../sync/outcome.ts';
import { type Log, sparingly } from './logger.ts';
import type { Troubles } from './troubles.ts';

type Counts = Extract<Outcome, { kind: 'done' }>['counts'];

/** One line for the end of each run of a task, at the level that it deserves. */
export function createTaskLines(log: Log, troubles: Troubles): (report: TaskReport) => void {
  let plan = '';

  /** A plan is solved every ten minutes; what matters is that looks become scarce, or suffice again. */
  function planIsNews(counts: Counts): boolean {
    const now = `${counts['scarce'] ?? 0} ${counts['incident'] ?? ''}`;
    const news = plan !== '' && now !== plan;
    plan = now;
    return news;
  }

  return ({ task, outcome, ms, error }) => {
    const run = { durationMs: Math.round(ms), nextInSeconds: Math.round(outcome.nextInMs / 1000) };
    if (outcome.kind === 'postponed') {
      return log.debug({ event: `${task}.postponed`, ...run, because: outcome.because });
    }
    if (outcome.kind === 'failed') {
      const { kind: _, nextInMs: __, ...failure } = outcome;
      const line = { ...run, ...failure, ...(error === undefined ? {} : { err: error }) };
      // A refusal is the whole fleet's, and the pace tells of it.
      if (refuses(outcome.because)) return log.debug({ event: `${task}.failed`, ...line });
      const { say, ...facts } = troubles.again(`task ${task}`, outcome.because);
      return sparingly(log, 'warn', say, { event: `${task}.failed`, ...line, ...facts });
    }
    const ended = troubles.over(`task ${task}`);
    if (ended?.say === true) {
      const { times, lastedSeconds } = ended;
      log.info({ event: `${task}.recovered`, times, lastedSeconds });
    }
    const done = { ...run, ...outcome.counts };
    if (task === 'manifest' || task === 'catalog-check') return log.info({ event: `${task}.done`, ...done });
    if (task === 'live-plan' && planIsNews(outcome.counts))
      return log.info({ event: 'live-plan.done', ...done });
    log.debug({ event: `${task}.done`, ...done });
  };
}
