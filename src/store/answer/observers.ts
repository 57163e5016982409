import type { Clock } from '../../lib/clock.ts';
import { HintCounts } from '../sellers/hints.ts';
import { CalibrationCounts } from '../trust/calibration.ts';
import { NO_MOVES } from './hour-of-moves.ts';
import { MemberWatch } from './members.ts';
import { MoveCounts } from './move-counts.ts';

/** What a process counts over its answers. An answer is noted once it is committed. */
export interface AnswerObservers {
  /** Notices members that move with each refresh. */
  readonly members: Pick<MemberWatch, 'follows' | 'note'>;
  /** Counts how refreshes test the probabilities held before them. */
  readonly calibration: Pick<CalibrationCounts, 'note' | 'take' | 'giveBack'>;
  /** Counts what refreshes show about the sources of hints. */
  readonly hints: Pick<HintCounts, 'note' | 'take' | 'giveBack'>;
  /** Notices moves in masses. */
  readonly moves: Pick<
    MoveCounts,
    | 'follow'
    | 'note'
    | 'noteBegun'
    | 'hour'
    | 'alone'
    | 'areEnough'
    | 'hasStood'
    | 'mayAsk'
    | 'mayTurn'
    | 'usualMove'
  >;
}

/** Creates the observers of one process, with nothing counted. */
export const createObservers = (clock: Pick<Clock, 'monotonic'>): AnswerObservers => ({
  members: new MemberWatch(() => clock.monotonic()),
  calibration: new CalibrationCounts(clock),
  hints: new HintCounts(clock),
  moves: new MoveCounts(clock),
});

/** Observers that notice and count nothing. */
export const NO_OBSERVERS: AnswerObservers = {
  members: { follows: () => false, note: () => ({ muted: [], unmuted: [], renewed: [] }) },
  calibration: { note: () => {}, take: () => [], giveBack: () => {} },
  hints: { note: () => {}, take: () => null, giveBack: () => {} },
  moves: {
    follow: () => {},
    note: () => {},
    noteBegun: () => {},
    hour: () => NO_MOVES,
    alone: async (work) => await work(),
    areEnough: () => false,
    hasStood: () => false,
    mayAsk: () => true,
    mayTurn: () => false,
    usualMove: () => null,
  },
};
