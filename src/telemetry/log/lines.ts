import type { Clock } from '../../lib/clock.ts';
import type { PacerEvents } from '../../pace/pacer.ts';
import { refuses } from '../../pace/policy.ts';
import type { TaskReport } from '../../queues/task-run.ts';
import type { ClockEvent } from '../../sync/clocks.ts';
import type { TaskOutcome } from '../../sync/outcome.ts';
import { type Log, throttled } from './logger.ts';
import { createLogThrottle, type LogThrottle } from './throttle.ts';

/** Creates the log lines of the pace. Call `passed` for every request that was not refused. */
export function paceLines(
  log: Log,
  throttle: LogThrottle,
  clock: Pick<Clock, 'now'>,
): Required<Pick<PacerEvents, 'backedOff' | 'resumed'>> & { readonly passed: () => void } {
  function over(more: { readonly requestsPerWindow?: number }): void {
    const ended = throttle.over('pace');
    // The back-off may have been another daemon's, which logs its end itself.
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

/** Creates a function that logs the end of each run of a task, at an appropriate level. */
export function createTaskLines(log: Log, throttle: LogThrottle): (report: TaskReport) => void {
  let plan = '';

  /**
   * Returns whether a plan, solved every ten minutes, is worth a line: refreshes become scarce or suffice again, more
   * becomes due than they can do, or the incident changes.
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

/** Logs what libraries print and Node.js warns of. Texts that differ only in numbers are throttled as one. */
export function libraryLines(log: Log, clock: Clock): (from: string, text: string) => void {
  const throttle = createLogThrottle(clock);
  return (from, text) => {
    // Texts are fingerprints, not conditions of their own, because there may be endlessly many.
    const { say, ...facts } = throttle.again(from, text.slice(0, 200).replaceAll(/\d+/g, '#'));
    throttled(log, 'warn', say, { event: 'library.noise', from, text, ...facts });
  };
}

/** Creates log lines about clocks that were set or are wrong. */
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
