import { read } from '../expressions.ts';
import { type Row, series } from '../panels.ts';

export const followers: Row = {
  title: 'Followers',
  panels: [
    series({
      title: 'How long changes wait for a follower',
      description:
        'Age of the first change that a follower (`catalog-mirror follow`) has not delivered. A receiver that is down shows as a line that rises.',
      unit: 's',
      queries: [{ expr: read('follower_behind_seconds', 'follower'), legend: '{{follower}}' }],
      width: 8,
      noValue: 'nobody follows with a name',
      runbooks: ['follower-behind'],
    }),
    series({
      title: 'Changes that wait for a follower',
      description: '10,000 at most are counted. A position that is lost has no line.',
      unit: 'short',
      queries: [
        { expr: read('follower_behind_changes', 'follower'), legend: '{{follower}}' },
        { expr: `${read('follower_position_lost', 'follower')} > 0`, legend: '{{follower}}: position lost' },
      ],
      width: 8,
      noValue: 'nobody follows with a name',
      runbooks: ['follower-behind'],
    }),
    series({
      title: 'Failed deliveries and dead letters',
      description: 'Deliveries in a row that have failed, and batches that a receiver has refused for good.',
      unit: 'short',
      queries: [
        { expr: read('follower_failures', 'follower'), legend: '{{follower}}: failures in a row' },
        { expr: read('follower_dead_letters', 'follower'), legend: '{{follower}}: dead letters' },
      ],
      width: 8,
      noValue: 'nobody follows with a name',
      runbooks: ['follower-dead-letters'],
    }),
  ],
};
