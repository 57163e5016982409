import { choice, either, hostNames, integer, label, linkBase, pattern, secretText } from './rules.ts';
import type { Setting } from './setting.ts';

/** The settings of the daemon's own HTTP server and of its log. */
export const SERVER_SETTINGS = {
  HTTP_HOST: {
    path: 'http.host',
    rule: pattern('a host name or address', /^[^\s/]+$/),
    default: '127.0.0.1',
    meaning: 'address of the metrics and health server',
  },
  HTTP_PORT: {
    path: 'http.port',
    rule: integer(0, 65_535),
    default: '9464',
    meaning: 'port of the metrics and health server; 0: any free port, printed in the log',
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
