import { measured, perMinute, read, since } from '../expressions.ts';
import { type Row, series } from '../panels.ts';

export const requests: Row = {
  title: 'Requests in the window, and refusals',
  panels: [
    series({
      title: 'Requests in the window against the limit',
      description:
        "Requests in the present rolling window, of the mirror and of the account's other users as they told it, against the account's limit and the mirror's part of it.",
      unit: 'short',
      queries: [
        { expr: read('requests_in_window'), legend: 'mirror' },
        { expr: read('other_requests_in_window'), legend: 'others' },
        { expr: read('requests_in_window_limit', 'of'), legend: 'limit of the {{of}}' },
      ],
      width: 12,
      runbooks: ['throttled'],
    }),
    series({
      title: 'Pace',
      description: 'Requests a minute that the mirror allows itself at present, and those that were sent.',
      unit: 'cpm',
      queries: [
        { expr: read('request_ceiling_per_minute'), legend: 'allowed' },
        { expr: perMinute('partner_requests_total'), legend: 'sent' },
      ],
      width: 12,
    }),
    series({
      title: 'Waiting for a turn',
      description: 'How long 95 % of the requests waited for their turn at most, by who asked.',
      unit: 's',
      queries: [
        {
          expr: measured(0.95, 'partner_request_wait_seconds', '$__rate_interval', ['lane']),
          legend: '{{lane}}',
        },
      ],
      width: 8,
    }),
    series({
      title: 'Put off',
      description:
        'Requests whose turn was too far off to wait for, by who asked and what they would have waited for.',
      unit: 'cpm',
      queries: [
        {
          expr: perMinute('partner_request_put_offs_total', ['lane', 'because']),
          legend: '{{lane}}: {{because}}',
        },
      ],
      width: 8,
    }),
    series({
      title: 'Duration of requests',
      description:
        'Time that 95 % of the requests took at most, from sending to the end of the answer, by route.',
      unit: 's',
      queries: [
        {
          expr: measured(0.95, 'partner_request_duration_seconds', '$__rate_interval', ['route']),
          legend: '{{route}}',
        },
      ],
      width: 8,
    }),
    series({
      title: 'Silence',
      description:
        '1 while a refusal keeps the fleet silent, and while the credential is suspected: refusals outlive windows without other own requests.',
      unit: 'bool',
      queries: [
        { expr: read('backing_off'), legend: 'silent' },
        { expr: read('credential_suspected'), legend: 'credential suspected' },
      ],
      width: 8,
      max: 1,
      runbooks: ['throttled', 'credential-rejected'],
    }),
    series({
      title: 'Refusals in a row',
      description:
        "403, 401 or the authorizer's 500 with nothing let through in between; 0 while requests pass.",
      unit: 'short',
      queries: [{ expr: read('refusals'), legend: 'refusals' }],
      width: 8,
      runbooks: ['throttled', 'credential-rejected'],
    }),
    series({
      title: 'Refused for',
      description:
        'Time since the first of the present refusals; no line while requests pass. Half an hour pages.',
      unit: 's',
      queries: [{ expr: since('refused_since_timestamp_seconds'), legend: 'refused for' }],
      width: 8,
      thresholds: [[1800, 'red']],
      noValue: 'requests pass',
      runbooks: ['credential-rejected'],
    }),
    series({
      title: 'Requests that failed',
      description: 'Requests by route and kind of error; kinds that did not occur are left out.',
      unit: 'cpm',
      queries: [
        {
          expr: `${perMinute('partner_requests_total', ['route', 'outcome'], 'outcome!="ok"')} > 0`,
          legend: '{{route}}: {{outcome}}',
        },
      ],
      width: 12,
      noValue: 'none failed',
      runbooks: ['throttled'],
    }),
    series({
      title: 'Requests answered',
      description: 'Requests with a usable answer, by route.',
      unit: 'cpm',
      queries: [
        { expr: perMinute('partner_requests_total', ['route'], 'outcome="ok"'), legend: '{{route}}' },
      ],
      width: 12,
    }),
  ],
};
