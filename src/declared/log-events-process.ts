import { line, OVER, REPEATED } from './log-event.ts';

export const PROCESS = {
  'app.started': line('info', 'the daemon is running', ['version', 'queues', 'host', 'port', 'page']),
  'app.stopping': line(
    'info',
    'the daemon received a stop signal',
    ['signal'],
    'it stops within ten seconds',
  ),
  'app.stopped': line('info', 'the daemon has stopped', ['code']),
  'app.crashed': line(
    'fatal',
    'uncaught error',
    ['err'],
    'the process exits with 1; unfinished work stays due. Restart it, and report this line',
  ),
  'app.stalled': line(
    'fatal',
    'no job has ended for minutes, although Postgres and the queues answer',
    ['lastJobSecondsAgo'],
    'the process exits with 1, so that it is started again; report this line if it comes back',
  ),
  'app.outdated': line(
    'fatal',
    'a later version of catalog-mirror has migrated the database while this one ran',
    [],
    'the process takes no more work and exits with 1, and so does each start of this version. Run the later one everywhere',
  ),
  'app.other-account': line(
    'fatal',
    'the database has become the mirror of another account while this daemon was away',
    [],
    'the process takes no more work and exits with 78, as does each start with another PARTNER_BASE_URL than the mirrored one. ' +
      'Correct PARTNER_BASE_URL, PARTNER_API_KEY and PARTNER_SECRET, or DATABASE_URL',
  ),
  'app.dispose-failed': line(
    'warn',
    'a component could not be closed during shutdown',
    ['err'],
    'shutdown continues with the other components',
  ),
  'log.lost': line(
    'warn',
    'lines before this one could not be written to the log, and are lost',
    ['lines', 'code'],
    'logging continues. ENOSPC: make room where the log is kept; EAGAIN: whoever reads it was too slow',
  ),
  'config.warning': line(
    'warn',
    'the configuration is valid but questionable',
    ['warning'],
    'the daemon starts anyway; `warning` says what to check',
  ),
  'credential.changed': line('info', 'the credential file has changed; the next request uses it'),
  'credential.key-replaced': line(
    'warn',
    'PARTNER_API_KEY has changed, and an api_key identifies an account',
    [],
    'the daemon continues with the prices it has. If the key belongs to another account, stop all daemons and ' +
      'run `catalog-mirror migrate --adopt-account`',
  ),
  'rights.not-granted': line(
    'warn',
    'Postgres refuses to grant what catalog_reader or catalog_watcher lacks',
    ['err'],
    'the daemon goes on; whoever reads by these roles may lack something. err says what is refused; `catalog-mirror migrate` tries again',
  ),
  'settings.differ': line(
    'warn',
    'daemons on this database have different settings, and SQL goes by those of the one that was started last',
    ['settings', 'effective'],
    'effective says whose count: own, or those of the other daemon. Give all daemons on this database the same settings; ' +
      'during a rolling update it is over once the old one has stopped',
  ),
  'settings.restored': line(
    'info',
    'the settings that SQL goes by were those of a daemon that is gone, and are those of this one again',
    ['settings'],
  ),
  'scope.mode': line('info', 'MIRROR_SCOPE has changed: all SKUs are sorted anew by what is in scope', [
    'scope',
  ]),
  'once.waiting': line('info', '`run --once` is still waiting', ['baseline', 'deltaCaughtUp', 'due']),
  'once.caught-up': line('info', 'caught up: nothing is pending', ['durationSeconds']),
  'once.timeout': line(
    'error',
    '`run --once` timed out',
    ['baseline', 'deltaCaughtUp', 'due'],
    'the process exits with 75; pending work stays due for the next run',
  ),
  'library.noise': line(
    ['warn', 'debug'],
    'message from a library or Node.js',
    ['from', 'text', ...REPEATED],
    'the daemon continues; check whether the message needs attention',
  ),
  'log.unreadable': line(
    'error',
    'a log line could not be parsed and is shown as text',
    ['text'],
    'only the members of that line are lost',
  ),
  'http.failed': line(
    ['warn', 'debug'],
    'an HTTP response could not be built or sent',
    ['path', 'err', ...REPEATED],
    'the caller got a 503 or no response; the next request is handled normally',
  ),
  'http.unknown-host': line(
    'warn',
    'an HTTP request was refused, because its Host is not a known name of this server',
    ['host', 'from', ...REPEATED],
    'it is answered with 421; if the name is yours, add it to HTTP_ALLOWED_HOSTS',
  ),
  'http.wrong-password': line(
    'warn',
    'an HTTP request was refused, because its password is wrong',
    ['from', ...REPEATED],
    'it is answered with 401, and later ones are counted; check what asks from that address',
  ),
  'http.crowded': line(
    'warn',
    'more HTTP connections than there is room for',
    ['from', ...REPEATED],
    'the connection that has waited longest makes room, and probes are still answered; check what connects from that address',
  ),
  'traces.failed': line(
    ['warn', 'debug'],
    'traces could not be sent to the collector',
    ['err', 'lostSpans', ...REPEATED],
    'lostSpans, since the last such line, are lost, and further ones are sent; the daemon goes on as without ' +
      'traces. Check OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS and the collector',
  ),
  'traces.recovered': line('info', 'traces are sent to the collector again', [...OVER]),
  'status.unread': line(
    ['warn', 'debug'],
    'the status could not be read from Postgres',
    ['err', ...REPEATED],
    'page and metrics are without what is read there, and each scrape reads anew; sync goes on. `err` says why: ' +
      'no answer in time means a slow or busy Postgres',
  ),
  'status.read': line(['info', 'debug'], 'the status is read from Postgres again', [...OVER]),
  'counts.failed': line(
    ['warn', 'debug'],
    'the catalog could not be counted',
    ['err', ...REPEATED],
    'status, page and metrics show the counts of before, or no figures where there are none yet; it is counted again after ' +
      'a rest, and sync goes on. `err` says why',
  ),
  'counts.recovered': line(['info', 'debug'], 'the catalog is counted again', [...OVER]),
} as const;
