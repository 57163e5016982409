import { measured, perMinute, read, since } from '../expressions.ts';
import { type Row, series } from '../panels.ts';

export const tasks: Row = {
  title: 'Tasks and jobs',
  panels: [
    series({
      title: 'Time since the last success of a task',
      description:
        'In any daemon. For reprice: since a bulk answer was applied, which is long if nothing is due.',
      unit: 's',
      queries: [{ expr: since('task_last_success_timestamp_seconds', 'task'), legend: '{{task}}' }],
      width: 12,
      runbooks: ['backlog-stuck'],
    }),
    series({
      title: 'Failures of a task in a row',
      description:
        'In any daemon; 0 after a success. Five of the manifest, or of a task that asks the partner nothing, raise a ticket.',
      unit: 'short',
      queries: [{ expr: read('task_failures', 'task'), legend: '{{task}}' }],
      width: 12,
      runbooks: ['manifest-failing', 'task-failing'],
    }),
    series({
      title: 'Jobs',
      description:
        'Jobs completed, by queue and outcome; not-due is a job that came too early and did nothing.',
      unit: 'cpm',
      queries: [
        { expr: `${perMinute('jobs_total', ['queue', 'outcome'])} > 0`, legend: '{{queue}}: {{outcome}}' },
      ],
      width: 8,
    }),
    series({
      title: 'Duration of jobs',
      description: '95th percentile of the duration of jobs, by queue.',
      unit: 's',
      queries: [
        {
          expr: measured(0.95, 'job_duration_seconds', '$__rate_interval', ['queue']),
          legend: '{{queue}}',
        },
      ],
      width: 8,
    }),
    series({
      title: 'Jobs paused because of Postgres',
      description: '1 while a daemon pauses jobs because Postgres rejects writes, by cause.',
      unit: 'bool',
      queries: [{ expr: read('store_paused', 'because'), legend: '{{because}}' }],
      width: 8,
      max: 1,
      runbooks: ['store-paused'],
    }),
  ],
};
