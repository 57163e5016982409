import { measured, perMinute, read, since, where } from '../expressions.ts';
import { type Row, series } from '../panels.ts';

export const requests: Row = {
  title: 'Requests in the window, and rejected requests',
  panels: [
    series({
      title: 'Requests in the window against the limit',
      description:
        "Requests in the current rolling window, of the mirror and of the account's other services that use take_request, against the account's limit and the mirror's part of it.",
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
      title: 'Request rate',
      description: 'Requests per minute that the mirror currently allows itself, and those that were sent.',
      unit: 'cpm',
      queries: [
        { expr: read('request_ceiling_per_minute'), legend: 'allowed' },
        { expr: perMinute('partner_requests_total'), legend: 'sent' },
      ],
      width: 12,
    }),
    series({
      title: 'Wait for the rate limit',
      description: '95th percentile of the time that requests waited for the rate limit, by lane.',
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
      title: 'Postponed requests',
      description:
        'Requests that were postponed because the wait would have been too long, by lane and cause of the wait.',
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
      description: '95th percentile of the time from sending a request to the end of its answer, by route.',
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
      title: 'Back-off',
      description:
        '1 while a rejected request makes all daemons back off, and while the credential is suspected: requests are rejected although the mirror sent no others in the window.',
      unit: 'bool',
      queries: [
        { expr: read('backing_off'), legend: 'backing off' },
        { expr: read('credential_suspected'), legend: 'credential suspected' },
      ],
      width: 8,
      max: 1,
      runbooks: ['throttled', 'credential-rejected'],
    }),
    series({
      title: 'Rejected requests in a row',
      description:
        "403, 401 or the authorizer's 500 with nothing let through in between; 0 while requests pass.",
      unit: 'short',
      queries: [{ expr: read('refusals'), legend: 'rejected' }],
      width: 8,
      runbooks: ['throttled', 'credential-rejected'],
    }),
    series({
      title: 'Rejected for',
      description:
        'Time since the first of the consecutive rejected requests; no line while requests succeed. Half an hour pages.',
      unit: 's',
      queries: [{ expr: since('refused_since_timestamp_seconds'), legend: 'rejected for' }],
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
          expr: `${perMinute(where('partner_requests_total', { outcome: 'ok' }, '!='), ['route', 'outcome'])} > 0`,
          legend: '{{route}}: {{outcome}}',
        },
      ],
      width: 12,
      noValue: 'none failed',
      runbooks: ['throttled'],
    }),
    series({
      title: 'Successful requests',
      description: 'Requests with a usable answer, by route.',
      unit: 'cpm',
      queries: [
        {
          expr: perMinute(where('partner_requests_total', { outcome: 'ok' }), ['route']),
          legend: '{{route}}',
        },
      ],
      width: 12,
    }),
  ],
};
