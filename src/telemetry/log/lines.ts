import type { Clock } from '../../lib/clock.ts';
import type { PacerEvents } from '../../pace/pacer.ts';
import { refuses } from '../../pace/policy.ts';
import type { TaskReport } from '../../queues/task-run.ts';
import type { ClockEvent } from '../../sync/clocks.ts';
import type { TaskOutcome } from '../../sync/outcome.ts';
import { type Log, throttled } from './logger.ts';
import { createLogThrottle, type LogThrottle } from './throttle.ts';

/** Log lines of the pace; call `passed` for every request that was not refused. */
export function paceLines(
  log: Log,
  throttle: LogThrottle,
  clock: Pick<Clock, 'now'>,
): Required<Pick<PacerEvents, 'backedOff' | 'resumed'>> & { readonly passed: () => void } {
  function over(more: { readonly requestsPerWindow?: number }): void {
    const ended = throttle.over('pace');
    // The back-off may have been another daemon's: its own line is there.
    if (ended === null) {
      if (more.requestsPerWindow !== undefined) log.debug({ event: 'pace.resumed', ...more });
      return;
    }
    const { say, ...facts } = ended;
    throttled(log, 'info', say, { event: 'pace.resumed', ...more, ...facts });
  }
  return {
    backedOff({ outcome, suspected, explained, backoffUntil, refusals, occupancy, isAlone = false }) {
      const paused = isAlone ? 'this daemon sends nothing' : 'all requests are paused';
      const { say, ...facts } = throttle.again('pace', `${outcome} ${suspected}`);
      throttled(
        log,
        'warn',
        say,
        {
          event: 'pace.silenced',
          outcome,
          suspected,
          backoffUntil: new Date(backoffUntil).toISOString(),
          backoffSeconds: Math.round((backoffUntil - clock.now()) / 1000),
          episodes: refusals,
          ownRequests: occupancy,
          ...facts,
        },
        `${explained ?? 'throttled or refused'}; ${paused} until backoffUntil, then one is sent as a test`,
      );
    },
    resumed: ({ ceiling }) => over({ requestsPerWindow: Math.round(ceiling) }),
    passed: () => over({}),
  };
}

type Counts = Extract<TaskOutcome, { kind: 'done' }>['counts'];

/** One line for the end of each run of a task, at the level that it deserves. */
export function createTaskLines(log: Log, throttle: LogThrottle): (report: TaskReport) => void {
  let plan = '';

  /**
   * A plan is solved every ten minutes; what matters is that refreshes become scarce, or suffice again, or that more
   * is due than they can do.
   */
  function planIsNews(counts: Counts): boolean {
    const { scarce = 0, backlog = 0, incident = '' } = counts;
    const now = `${scarce} ${Number(backlog) > 0} ${incident}`;
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
      // A refusal concerns all daemons, and the pace logs it.
      if (refuses(outcome.because)) return log.debug({ event: `${task}.failed`, ...line });
      const { say, ...facts } = throttle.again(`task ${task}`, outcome.because);
      return throttled(log, 'warn', say, { event: `${task}.failed`, ...line, ...facts });
    }
    const ended = throttle.over(`task ${task}`);
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

/** What libraries print and Node.js warns of. The same text is throttled, whatever numbers it has. */
export function libraryLines(log: Log, clock: Clock): (from: string, text: string) => void {
  const throttle = createLogThrottle(clock);
  return (from, text) => {
    // No text is a condition of its own: there may be no end of them.
    const { say, ...facts } = throttle.again(from, text.slice(0, 200).replaceAll(/\d+/g, '#'));
    throttled(log, 'warn', say, { event: 'library.noise', from, text, ...facts });
  };
}

/** Log lines of clocks that were set, or are wrong. */
export function clockLines(log: Log, throttle: LogThrottle): (event: ClockEvent) => void {
  return (event) => {
    switch (event.event) {
      case 'clock.jumped':
        return log.warn({ event: 'clock.jumped', clock: event.clock, bySeconds: event.ms / 1000 });
      case 'clock.set-back': {
        throttle.over('clock-right');
        const durationMs = Math.round(event.ms);
        return log.warn({ event: 'clock.set-back', bySeconds: event.seconds, durationMs });
      }
      case 'clock.not-put-right': {
        const { part, problem, hint } = event;
        const { say, ...facts } = throttle.again('clock-right', `${part} ${problem}`);
        return throttled(log, 'warn', say, { event: 'clock.not-put-right', part, problem, hint, ...facts });
      }
      case 'clock.compared': {
        if (event.wrong === null) {
          const ended = throttle.over('clock');
          if (ended?.say === true)
            log.info({ event: 'clock.agrees', times: ended.times, lastedSeconds: ended.lastedSeconds });
          return;
        }
        const { clock, aheadMs } = event.wrong;
        const { say, ...facts } = throttle.again('clock', clock);
        const aheadSeconds = Math.round(aheadMs / 1000);
        throttled(log, 'warn', say, { event: 'clock.differs', clock, aheadSeconds, ...facts });
      }
    }
  };
}
