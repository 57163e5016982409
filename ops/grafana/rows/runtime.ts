import { CHOSEN, named } from '../expressions.ts';
import { type Row, series } from '../panels.ts';

/** What prom-client exports of the process and of Node.js, by daemon. */
export const runtime: Row = {
  title: 'Runtime',
  panels: [
    series({
      title: 'Processor',
      description: 'Cores in use, by daemon.',
      unit: 'short',
      queries: [
        { expr: `rate(process_cpu_seconds_total{${CHOSEN}}[$__rate_interval])`, legend: '{{instance}}' },
      ],
      width: 6,
    }),
    series({
      title: 'Memory',
      description: 'Resident memory of the process, and the part of its heap that is in use.',
      unit: 'bytes',
      queries: [
        { expr: `process_resident_memory_bytes{${CHOSEN}}`, legend: '{{instance}} resident' },
        { expr: `nodejs_heap_size_used_bytes{${CHOSEN}}`, legend: '{{instance}} heap' },
      ],
      width: 6,
    }),
    series({
      title: 'Event loop',
      description: 'Delay of timers: the 99th percentile since the previous scrape.',
      unit: 's',
      queries: [{ expr: `nodejs_eventloop_lag_p99_seconds{${CHOSEN}}`, legend: '{{instance}}' }],
      width: 6,
    }),
    series({
      title: 'Garbage collection',
      description: 'Share of time spent in it, by daemon.',
      unit: 'percentunit',
      queries: [
        {
          expr: `sum by (instance) (rate(nodejs_gc_duration_seconds_sum{${CHOSEN}}[$__rate_interval]))`,
          legend: '{{instance}}',
        },
      ],
      width: 6,
    }),
    series({
      title: 'Daemons',
      description: 'Every scraped daemon, with its version and that of Node.js.',
      unit: 'short',
      queries: [
        {
          expr: `max by (instance, version, node) (${named('build_info')}{${CHOSEN}})`,
          legend: '{{instance}}: {{version}} on Node.js {{node}}',
        },
      ],
      width: 8,
      runbooks: ['absent', 'restarting'],
    }),
    series({
      title: 'Postgres could be read',
      description: '1 if the daemon could read the mirror for this scrape, 0 if Postgres did not answer.',
      unit: 'bool',
      queries: [{ expr: `${named('mirror_stats_available')}{${CHOSEN}}`, legend: '{{instance}}' }],
      width: 8,
      max: 1,
      runbooks: ['stats-unavailable'],
    }),
    series({
      title: 'Open files',
      description: 'File descriptors in use, sockets among them.',
      unit: 'short',
      queries: [{ expr: `process_open_fds{${CHOSEN}}`, legend: '{{instance}}' }],
      width: 8,
    }),
  ],
};
