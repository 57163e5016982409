import {
  choice,
  either,
  headerPairs,
  hostNames,
  hostOrAddress,
  integer,
  label,
  linkBase,
  otlpEndpoint,
  ratio,
  secretText,
  type Setting,
} from './rules.ts';

/** The settings of the daemon's own HTTP server and of its log. */
export const SERVER_SETTINGS = {
  HTTP_HOST: {
    path: 'http.host',
    rule: hostOrAddress(),
    default: '127.0.0.1',
    meaning:
      'address of the metrics and health server; `::`: every address, of IPv6 and IPv4, in the image the default',
  },
  HTTP_PORT: {
    path: 'http.port',
    rule: integer(0, 65_535),
    default: '9464',
    meaning:
      'port of the metrics and health server; 0: any free port, printed in the log, which `healthcheck` does not find',
  },
  HTTP_ALLOWED_HOSTS: {
    path: 'http.allowedHosts',
    rule: hostNames(),
    unset: 'none',
    meaning:
      'further names under which the server is reached, such as `worker,mirror.shop.example`. Requests with ' +
      'another `Host` than these, HTTP_HOST, `localhost` or an address get 421',
  },
  HTTP_PASSWORD: {
    path: 'access.password',
    rule: secretText('16 to 256 printable ASCII characters without spaces', /^[\x21-\x7e]{16,256}$/),
    unset: 'none',
    secret: true,
    meaning:
      'password of the status page, `/status.json`, `/metrics` and the reasons in `/readyz`: as Basic password ' +
      'with any user name, or as Bearer token. Its file is read again once a second while requests come',
  },
  STATUS_PAGE: {
    path: 'http.statusPage',
    rule: either('on', 'off'),
    default: 'on',
    meaning: 'the status page at `GET /` and `GET /status.json`; off: both return 404',
  },
  RUNBOOK_URL_BASE: {
    path: 'http.runbookUrlBase',
    rule: linkBase(),
    unset: 'paths in the repository are named',
    meaning:
      'URL under which your team reads the files of `ops/runbooks`, such as ' +
      '`https://wiki.example.com/runbooks`: the status page links to `throttled.md` and so on under it',
  },
  MIRROR_NAME: {
    path: 'log.mirrorName',
    rule: label(64),
    unset: 'host name',
    meaning:
      'what this mirror is called on the status page and in the title of its tab, in log lines (`mirror`) and ' +
      'in the label `mirror` of the metric `build_info`: `prod`, `staging`',
  },
  LOG_LEVEL: {
    path: 'log.level',
    rule: choice(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    default: 'info',
    meaning: 'minimum level that is logged',
  },
  LOG_FORMAT: {
    path: 'log.format',
    rule: choice(['auto', 'json', 'text']),
    default: 'auto',
    meaning:
      'form of the log on stdout: `json` for programs, `text` for people, `auto`: text on a terminal, else JSON',
  },
} as const satisfies Readonly<Record<string, Setting>>;

/** Trace settings, under OpenTelemetry's names. Its library reads its other variables itself (docs/traces.md). */
export const TRACE_SETTINGS = {
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    path: 'traces.endpoint',
    rule: otlpEndpoint(),
    unset: 'no traces',
    meaning:
      'OTLP/HTTP endpoint of a collector, such as `http://collector:4318`, to which traces are sent ' +
      '(`/v1/traces` is appended); unset, nothing of OpenTelemetry is loaded. See docs/traces.md',
  },
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: {
    path: 'traces.url',
    rule: otlpEndpoint(),
    unset: 'made of OTEL_EXPORTER_OTLP_ENDPOINT',
    meaning: 'the whole URL for traces, to which nothing is appended; takes precedence',
  },
  OTEL_EXPORTER_OTLP_HEADERS: {
    path: 'traces.headers',
    rule: headerPairs(),
    unset: 'none',
    secret: true,
    meaning:
      'headers for the collector, such as `authorization=Bearer%20…`, separated by commas, values ' +
      'percent-encoded. Values of eight characters and more never reach a log line. A file is read again when ' +
      'traces are sent',
  },
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: {
    path: 'traces.ownHeaders',
    rule: headerPairs(),
    unset: 'none',
    secret: true,
    meaning: 'further headers, for traces only; take precedence',
  },
  OTEL_EXPORTER_OTLP_PROTOCOL: {
    path: 'traces.protocol',
    rule: choice(['http/protobuf', 'http/json']),
    default: 'http/protobuf',
    meaning: 'how traces are encoded; gRPC is not spoken',
  },
  OTEL_SERVICE_NAME: {
    path: 'traces.serviceName',
    rule: label(255),
    default: 'catalog-mirror',
    meaning: '`service.name` of traces',
  },
  OTEL_TRACES_SAMPLER: {
    path: 'traces.sampler',
    rule: choice([
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ]),
    default: 'parentbased_always_on',
    meaning: 'which traces are recorded',
  },
  OTEL_TRACES_SAMPLER_ARG: {
    path: 'traces.ratio',
    rule: ratio(),
    default: '1',
    meaning: 'share of the traces that samplers by ratio record',
  },
  OTEL_TRACES_EXPORTER: {
    path: 'traces.exporter',
    rule: choice(['otlp', 'none']),
    default: 'otlp',
    meaning: '`none`: no traces, whatever the endpoint',
  },
  OTEL_SDK_DISABLED: {
    path: 'traces.disabled',
    // OpenTelemetry ignores the case, too.
    rule: either('true', 'false', 'insensitive'),
    default: 'false',
    meaning: '`true`: no traces, whatever the endpoint',
  },
  OTEL_BSP_SCHEDULE_DELAY: {
    path: 'traces.delayMs',
    rule: integer(1, 3_600_000),
    default: '5000',
    meaning: 'milliseconds for which spans are collected before they are sent',
  },
  OTEL_BSP_MAX_QUEUE_SIZE: {
    path: 'traces.queueSize',
    rule: integer(1, 100_000),
    default: '2048',
    meaning: 'spans that wait to be sent at most, a few kilobytes each; further ones are dropped',
  },
} as const satisfies Readonly<Record<string, Setting>>;
