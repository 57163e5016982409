import { line, OVER, REPEATED } from './log-event.ts';

const GO_ON = 'it is retried automatically; the next line comes when it is over, or within an hour';

export const STORE = {
  'database.waiting': line(
    'warn',
    'Postgres does not answer',
    ['waitedSeconds', 'patienceSeconds', 'hint', 'err'],
    'it is retried four times a second for patienceSeconds; then the start fails with exit code 1',
  ),
  'database.pooler': line(
    'error',
    'sessions of Postgres are not kept, or not as the mirror starts them: something is in between',
    ['err'],
    'the start ends with exit code 78: docs/connections.md says what is needed',
  ),
  'database.other-address': line(
    'warn',
    'the file of DATABASE_URL_FILE has another server, database or parameter than at the start',
    [],
    'the daemon goes on with those of its start, and with the user and password of the file. Restart it to have it use the others',
  ),
  'database.answers': line('info', 'Postgres answers; startup continues', ['waitedSeconds']),
  'database.migrating': line(
    'info',
    'migrations are applied, or those that another replica applies are waited for; the daemon answers nobody before they are',
    ['pending'],
    'this takes up to half an hour on a large catalog. Let it end: whoever ends it begins it anew. database.migrated follows',
  ),
  'database.migrated': line('info', 'all migrations are applied; startup continues', ['durationSeconds']),
  'store.lost': line(
    ['warn', 'debug'],
    'Postgres cannot be reached; prices are not updated',
    ['err', 'job', ...REPEATED],
    GO_ON,
  ),
  'store.back': line('info', 'Postgres answers again', [...OVER]),
  'store.paused': line(
    ['warn', 'debug'],
    'Postgres rejects writes; the job is paused',
    ['kind', 'job', 'retryInMs', 'hint', ...REPEATED],
    'one attempt follows after retryInMs, at most a minute; fix what `kind` names, as `hint` says',
  ),
  'store.locked': line(
    ['warn', 'debug'],
    'the mirror waits for a lock that somebody else holds in Postgres',
    ['holderPid', 'role', 'application', 'table', 'heldSeconds', 'command', 'waitedSeconds', ...REPEATED],
    'a waiting statement gives up after 20 seconds and is retried; ask the session to commit, or end it with ' +
      'pg_terminate_backend(holderPid)',
  ),
  'store.unlocked': line('info', 'the mirror no longer waits for locks of others', [...OVER]),
  'store.slow': line(
    ['warn', 'debug'],
    'Postgres has been at work on a statement of the mirror for longer than it is usually waited for',
    ['pid', 'ranSeconds', 'waitsFor', 'blockers', 'tables', 'attached', ...REPEATED],
    'it is waited for, up to half an hour, and begun again then; what `attached` names of yours runs within it: make it quick, ' +
      'or give the foreign key an index',
  ),
  'store.slow-ended': line('info', 'Postgres is no longer at work on such a statement', [...OVER]),
  'store.resumed': line(['info', 'debug'], 'Postgres accepts writes again', ['kind', 'job', ...OVER]),
  'clock.jumped': line(
    'warn',
    'a clock was set, or the machine has slept',
    ['clock', 'bySeconds'],
    "work resumes within seconds by Postgres's clock; if it recurs, check time synchronisation on that machine",
  ),
  'clock.set-back': line(
    'warn',
    'the clock of Postgres was set back, and the times that it wrote while it was ahead are put right',
    ['bySeconds', 'durationMs'],
    'SKUs that were asked meanwhile are asked again, and are in doubt until then; nothing is to be done',
  ),
  'clock.not-put-right': line(
    ['warn', 'debug'],
    'Postgres refuses to put times right that it wrote while its clock was ahead, and no price is actionable',
    ['part', 'problem', 'hint', ...REPEATED],
    'it is tried again within a minute; a trigger of yours has to let the role of the daemon change these times',
  ),
  'clock.differs': line(
    ['warn', 'debug'],
    'the clocks of Postgres, of this host and of the partner differ',
    ['clock', 'aheadSeconds', ...REPEATED],
    'set the clock that `clock` names, see to its time service; while it is that of Postgres, no price is actionable',
  ),
  'clock.agrees': line('info', 'the clocks agree again', [...OVER]),
  'postgres.notice': line(
    ['warn', 'debug'],
    'notice from Postgres',
    ['severity', 'code', 'text', ...REPEATED],
    'the statement was executed; a warning is for the database administrator',
  ),
  'queues.error': line(
    ['warn', 'debug'],
    'the queues or their store report an error',
    ['err', ...REPEATED],
    GO_ON,
  ),
  'queues.recovered': line('info', 'the queues work again', [...OVER]),
  'queues.unknown-job': line(
    ['warn', 'debug'],
    "the queues brought somebody else's job, and it was dropped",
    ['queue', ...REPEATED],
    'another program, or another version, has the same QUEUE_PREFIX in this Redis: give each mirror and each program its own',
  ),
  'job.failed': line(
    ['warn', 'debug'],
    'a job failed with an unexpected error',
    ['job', 'err', ...REPEATED],
    'it is retried within seconds; report the error',
  ),
  'job.recovered': line('info', 'the job works again', ['job', ...OVER]),
  'embedded.started': line('debug', 'the embedded Postgres accepts connections', [
    'pid',
    'port',
    'home',
    'uid',
    'created',
    'watchdog',
  ]),
  'embedded.server-died': line(
    'error',
    'the embedded Postgres exited unexpectedly',
    ['pid', 'status'],
    'it is not restarted in this process: restart the daemon; the server log is in DATA_DIR',
  ),
  'embedded.port-lost': line('info', 'another process took the port; the next port is tried', [
    'port',
    'attempt',
  ]),
  'embedded.watchdog-lost': line(
    'warn',
    'the watchdog process that stops the embedded Postgres has exited',
    ['pid'],
    'if the daemon is killed, the next start stops the server first',
  ),
  'embedded.stale-pid-file-removed': line('info', 'a stale pid file of an earlier server was removed', [
    'pid',
  ]),
  'embedded.orphan-found': line(
    'info',
    'a server of an earlier daemon was still running; it is being stopped',
    ['server', 'processes'],
  ),
  'embedded.data-dir-relocated': line(
    'info',
    'the data directory is placed where the service user has access',
    ['dataDir', 'to', 'uid'],
  ),
  'embedded.binaries-copied': line('debug', 'the server binaries were copied to where they can be executed', [
    'from',
    'to',
  ]),
  'embedded.links-repaired': line('debug', 'links between libraries were restored', ['links']),
} as const;
