import type { MirrorStats } from '../../status/stats.ts';
import type { FollowerNow } from '../../store/history/follower-list.ts';
import { gauge, unlisted } from './declaration.ts';

/** A value of each follower (fifty at most); their names are the seller's own. */
const byFollower =
  (of: (follower: FollowerNow) => number | null) =>
  ({ followers }: MirrorStats) =>
    followers.map((follower) => ({
      labels: { follower: follower.name, delivery: follower.delivery },
      value: of(follower),
    }));

/** How far those are who follow with a name (`catalog-mirror follow`); part of MIRROR_METRICS. */
export const FOLLOWER_METRICS = {
  follower_behind_changes: gauge({
    help:
      'Changes that a follower (`catalog-mirror follow`) has not delivered yet, those that its filter leaves out ' +
      'included; 10,000 at most are counted. No series where its position is lost.',
    labels: unlisted('follower', 'delivery'),
    read: byFollower(({ behind }) => behind),
  }),
  follower_behind_seconds: gauge({
    help:
      'How long the first change that a follower has not delivered has been known, or in a first copy how long ' +
      'nothing was delivered; 0: nothing waits. No series where its position is lost.',
    labels: unlisted('follower', 'delivery'),
    read: byFollower(({ behindSeconds }) => behindSeconds),
  }),
  follower_position_lost: gauge({
    help: '1 where the position of a follower is no longer kept or is of another history, so that it has to begin again, else 0.',
    labels: unlisted('follower', 'delivery'),
    read: byFollower(({ lost }) => (lost ? 1 : 0)),
  }),
  follower_failures: gauge({
    help: 'Deliveries of a follower in a row that have failed; 0 after a success.',
    labels: unlisted('follower', 'delivery'),
    read: byFollower(({ failures }) => failures),
  }),
  follower_dead_letters: gauge({
    help: 'Batches of changes that the receiver of a follower has refused for good and that wait for `follow --resend`.',
    labels: unlisted('follower', 'delivery'),
    read: byFollower(({ deadLetters }) => deadLetters),
  }),
};
