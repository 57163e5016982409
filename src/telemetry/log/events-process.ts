import { line, OVER, REPEATED } from './event.ts';

const GO_ON = 'it goes on trying by itself; the next line comes when it is over, or after an hour at most';

/** The process itself, its servers and commands. */
export const PROCESS = {
  'app.started': line('info', 'the daemon runs', ['version', 'queues', 'host', 'port']),
  'app.stopping': line('info', 'a signal asks the daemon to end', ['signal'], 'it ends within ten seconds'),
  'app.stopped': line('info', 'the daemon has ended', ['code']),
  'app.crashed': line(
    'fatal',
    'an error that nobody caught',
    ['err'],
    'the process exits 1; what was under way stays due. Let it be started again, and report this line',
  ),
  'app.dispose-failed': line(
    'warn',
    'a part of the daemon could not be closed at its stop',
    ['err'],
    'the stop goes on with the other parts',
  ),
  'config.warning': line(
    'warn',
    'the configuration is allowed, but doubtful',
    ['warning'],
    'the daemon starts with it',
  ),
  'credential.changed': line('info', 'the credential file has changed; the next request uses it'),
  'once.waiting': line('info', 'what `run --once` still waits for', ['baseline', 'deltaCaughtUp', 'due']),
  'once.caught-up': line('info', 'nothing is owed any more', ['durationSeconds']),
  'once.timeout': line(
    'error',
    'the time of `run --once` is over',
    ['baseline', 'deltaCaughtUp', 'due'],
    'the process exits 75; what is owed stays due for the next run',
  ),
  'library.noise': line(
    ['warn', 'debug'],
    'a library or Node.js had something to say',
    ['from', 'text', ...REPEATED],
    'the daemon goes on; what the text speaks of may want a look',
  ),
  'log.unreadable': line(
    'error',
    'a log line could not be read back and is shown as text',
    ['text'],
    'nothing is lost but the members of that line',
  ),
  'http.failed': line(
    ['warn', 'debug'],
    'an HTTP answer could not be made or sent',
    ['path', 'err', ...REPEATED],
    'the caller got a 503, or nothing; the next request is answered anew',
  ),
  'status.unread': line('debug', 'the status page could not read the mirror', ['err']),
} as const;

/** Postgres and the queues. */
export const STORE = {
  'database.waiting': line(
    'warn',
    'Postgres does not answer',
    ['waitedSeconds', 'patienceSeconds', 'err'],
    'it is tried again four times a second until patienceSeconds are over; then the start fails with exit 1',
  ),
  'database.answers': line('info', 'Postgres answers; the start goes on', ['waitedSeconds']),
  'store.lost': line(
    ['warn', 'debug'],
    'Postgres cannot be reached; prices are as they were',
    ['err', 'job', ...REPEATED],
    GO_ON,
  ),
  'store.back': line('info', 'Postgres answers again', [...OVER]),
  'store.paused': line(
    ['warn', 'debug'],
    'Postgres refuses to write; the job is held back',
    ['kind', 'job', 'retryInMs', ...REPEATED],
    'one try goes through after retryInMs, a minute at most; make room',
  ),
  'store.resumed': line(['info', 'debug'], 'Postgres takes writes again', ['kind', 'job', ...OVER]),
  'postgres.notice': line(
    ['warn', 'debug'],
    'Postgres had a notice for the client',
    ['severity', 'code', 'text', ...REPEATED],
    'the statement was carried out; a warning is for whoever looks after the database',
  ),
  'queues.error': line(
    ['warn', 'debug'],
    'the queues or their store have trouble',
    ['err', ...REPEATED],
    GO_ON,
  ),
  'queues.recovered': line('info', 'the queues work again', [...OVER]),
  'job.failed': line(
    ['warn', 'debug'],
    'a job ended with an error that is no outcome of its work',
    ['job', 'err', ...REPEATED],
    'the next knock, within seconds, runs it again; report the error',
  ),
  'job.recovered': line('info', 'the job works again', ['job', ...OVER]),
  'embedded.started': line('debug', 'the embedded Postgres takes connections', [
    'pid',
    'port',
    'home',
    'uid',
    'created',
    'watchdog',
  ]),
  'embedded.server-died': line(
    'error',
    'the embedded Postgres has ended by itself',
    ['pid', 'status'],
    'nothing brings it back in this process: restart the daemon; its log is beside DATA_DIR',
  ),
  'embedded.port-lost': line('info', 'another process took the port; the next one is tried', [
    'port',
    'attempt',
  ]),
  'embedded.watchdog-lost': line(
    'warn',
    'the process that stops the embedded Postgres with the daemon has gone',
    ['pid'],
    'should the daemon be killed, the next start stops the server first',
  ),
  'embedded.stale-pid-file-removed': line('info', 'a pid file of an earlier server was left behind', ['pid']),
  'embedded.orphan-found': line('info', 'a server of an earlier daemon still ran; it is stopped', [
    'server',
    'processes',
  ]),
  'embedded.data-dir-relocated': line('info', 'the data is kept where the service user can enter', [
    'dataDir',
    'to',
    'uid',
  ]),
  'embedded.binaries-copied': line('debug', 'the server programs were copied to where they can be run', [
    'from',
    'to',
  ]),
  'embedded.links-repaired': line('debug', 'links between libraries were put back', ['links']),
} as const;
