import { faultsOf, type Mutant } from './mutant.ts';

const LIMITS = ['test/store/answer-limit.pg.test.ts'];
const WORK = ['test/store/at-work.pg.test.ts'];
const SLOW = ['test/store/slow-statements.pg.test.ts'];
const LIVEZ = ['test/daemon/livez.test.ts'];
const FEW = ['test/faults/few-connections.e2e.test.ts'];
const FILES = ['test/security/tls-rotation.e2e.test.ts'];
const ROTATED = ['test/faults/rotated-login.e2e.test.ts'];

/**
 * Faults in the limits on waiting for a silent store, in the number of connections, and in handling a rotated
 * login. Faults in the driver itself (ops/patches) are not planted, because all trees share one node_modules.
 */
export const CONNECTIONS: readonly Mutant[] = [
  ...faultsOf(
    'src/store/connection/db.ts',
    [...WORK, 'test/store/left-statements.pg.test.ts'],
    [
      'slow statements: one of the pool that Postgres is at work on is given up',
      '      isworking: work.isWorking,\n',
      '',
    ],
    [
      'left statements: those of later connections run on',
      "connection['options'] = settings + CLIENT_CHECK_PIN;",
      'void settings;',
    ],
    [
      'left statements: one of a connection of its own runs on',
      'await client.query(CLIENT_CHECK)',
      "await client.query('select 1')",
    ],
    ['slow statements: what a pool is at work on is not known', '  WORK.set(sql, work);\n', ''],
  ),
  ...faultsOf(
    'src/store/connection/at-work.ts',
    ['test/store/standby-away.pg.test.ts'],
    ['slow statements: nobody says that a standby is away', 'waitsForStandby(statement) || ', ''],
  ),
  ...faultsOf(
    'src/status/health.ts',
    ['test/status/slow-statement.test.ts'],
    ['slow statements: an index brings a standby back', 'waitsForStandby(statement)\n', 'false\n'],
  ),
  ...faultsOf(
    'src/store/connection/at-work.ts',
    WORK,
    [
      'slow statements: one is waited for without an end',
      'silentMs + withinMs <= workWithinMs',
      'silentMs > 0',
    ],
    [
      'slow statements: one whose answer nobody takes is at work',
      "else a.state = 'active' and a.wait_event_type is distinct from 'Client' end",
      "else a.state = 'active' end",
    ],
    [
      'slow statements: one that is not shown is lost',
      "when coalesce(a.state, 'disabled') = 'disabled'",
      'when false',
    ],
    [
      'slow statements: with no connection left nobody is asked',
      'return await readAtWork(pool(), pid, silentMs);',
      'throw error;',
    ],
    [
      'slow statements: what others have attached elsewhere is named, too',
      'slow.filter(({ table }) => written.includes(table))',
      'slow',
    ],
    ['slow statements: nobody is named for a lock', 'b.pid = any (pg_blocking_pids(a.pid))', 'false'],
  ),
  ...faultsOf(
    'src/store/connection/at-work.ts',
    SLOW,
    [
      'slow statements: one that is long by itself is named',
      'writes && (waitsForStandby(statement) || statement.tables.length > 0 || statement.attached.length > 0)',
      'writes',
    ],
    ['slow statements: one that only reads is named', 'writes && (', '('],
    [
      'slow statements: each is named at once',
      'and a.query_start < clock_timestamp() - make_interval(secs => ${slowSeconds})',
      'and ${slowSeconds}::float8 > 0',
    ],
  ),
  ...faultsOf(
    'src/store/connection/neighbours.ts',
    SLOW,
    ['neighbours: any index will do', 'i.indkey[0] = sku.attnum or', 'sku.attnum = any (i.indkey) or'],
    ['neighbours: an index that begins with the SKU is none', 'i.indkey[0] = sku.attnum or ', ''],
    [
      'neighbours: an index of some rows will do',
      'and (i.indpred is null or pg_get_expr',
      'and (true or pg_get_expr',
    ],
    ['neighbours: a trigger that is off counts', " and t.tgenabled <> 'D'", ''],
    ['neighbours: partitions count again', ' and k.conparentid = 0', ''],
    [
      "neighbours: triggers of the mirror's own count",
      "\n      and n.nspname not in ('catalog', 'catalog_internal')\n    union all",
      '\n    union all',
    ],
    [
      'neighbours: what sellers write counts',
      "(n.nspname, c.relname) not in (('catalog', 'watchlist'), ('catalog', 'scope'))",
      'true',
    ],
  ),
  ...faultsOf(
    'src/daemon/health.ts',
    LIVEZ,
    ['slow statements: a daemon that waits for one is dead', ' || atWork().length > 0', ''],
    ['slow statements: Postgres does not answer while it is at work', 'busyText(atWork) ?? ', ''],
  ),
  ...faultsOf(
    'src/daemon/watches.ts',
    ['test/daemon/stalled.test.ts'],
    ['slow statements: a daemon that waits for one is stalled', 'atWork().length === 0 && ', ''],
  ),
  ...faultsOf(
    'src/daemon/watches.ts',
    ['test/faults/slow-triggers.e2e.test.ts'],
    ['slow statements: none is logged', 'telemetry.onSlow(parts.atWork())', 'undefined'],
  ),
  {
    breaks: 'connections: a statement of the pool waits for ever',
    file: 'src/store/connection/db.ts',
    from: 'answer_timeout: answerWithinMs / 1000,',
    to: '',
    tests: LIMITS,
  },
  {
    breaks: 'connections: the session of one that was dropped lives on',
    file: 'src/store/connection/db.ts',
    from: 'ondropped: endingDropped(() => sql, answerWithinMs),',
    to: '',
    tests: LIMITS,
  },
  {
    breaks: 'connections: a session that was dropped is ended by one attempt or never',
    file: 'src/store/connection/dropped-sessions.ts',
    from: 'if (dropped.size === 0) break;',
    to: 'break;',
    tests: LIMITS,
  },
  {
    breaks: 'connections: another session that has the number of one that was dropped is ended',
    file: 'src/store/connection/dropped-sessions.ts',
    from: 'and backend_start < clock_timestamp()',
    to: 'and backend_start <> clock_timestamp()',
    tests: LIMITS,
  },
  {
    breaks: 'connections: a scan has no more time than others',
    file: 'src/store/connection/db.ts',
    from: 'answer_timeout: SCAN_WITHIN_MS / 1000',
    to: 'answer_timeout: undefined',
    tests: LIMITS,
  },
  {
    breaks: 'connections: a COPY waits for ever',
    file: 'src/store/connection/answer-limit.ts',
    from: 'if (sent instanceof Writable)',
    to: "if (sent instanceof Writable) answered();\n    else if (typeof sent === 'string')",
    tests: LIMITS,
  },
  {
    breaks: 'connections: a statement that Postgres is at work on is given up',
    file: 'src/store/connection/answer-limit.ts',
    from: 'if (isAtWork !== false) {',
    to: 'if (isAtWork !== false && limit.withinMs === 0) {',
    tests: LIMITS,
  },
  {
    breaks: 'connections: a statement that Postgres is done with is waited for',
    file: 'src/store/connection/db.ts',
    from: "when state = 'active' and",
    to: "when pid > 0 or state = 'active' and",
    tests: LIMITS,
  },
  {
    breaks: 'connections: a statement that could not be asked after has as long again',
    file: 'src/store/connection/answer-limit.ts',
    from: 'Math.min(withinMs, ASK_AGAIN_MS)',
    to: 'withinMs',
    tests: ['test/store/answer-limit.test.ts'],
  },
  {
    breaks: 'connections: the end of one that has fallen silent is waited for',
    file: 'src/store/connection/db.ts',
    from: '  endSoon(client);\n',
    to: '',
    tests: LIMITS,
  },
  {
    breaks: 'connections: the first statements of a manifest have the time of another pool',
    file: 'src/store/catalog/baseline.ts',
    from: 'aside === undefined ? {} : answerLimitOf(aside)',
    to: '{}',
    tests: LIMITS,
  },
  {
    breaks: 'connections: one more than the setting says',
    file: 'src/daemon/database.ts',
    from: 'const LONE = 2;',
    to: 'const LONE = 1;',
    tests: FEW,
  },
  {
    breaks: 'connections: a limit of the role is not noticed at the start',
    file: 'src/daemon/database.ts',
    from: 'if (limit !== null && limit < poolMax)',
    to: 'if (limit !== null && limit < 0)',
    tests: FEW,
  },
  {
    breaks: 'login: DATABASE_URL_FILE is read at the start only',
    file: 'src/daemon/database.ts',
    from: '    source.refresh();\n',
    to: '',
    tests: ROTATED,
  },
  {
    breaks: 'login: a new user is not taken over',
    file: 'src/store/connection/db.ts',
    from: '  Object.assign(sql.options, { user });\n',
    to: '',
    tests: ROTATED,
  },
  {
    breaks: 'tls: its files are read at the start only',
    file: 'src/lib/tls.ts',
    from: 'const { tls: present } = connectionOf(url);',
    to: 'const present = tls;',
    tests: FILES,
  },
  {
    breaks: 'tls: a file that is away ends the daemon as the pool logs in',
    file: 'src/store/connection/db.ts',
    from: 'postgres(sessionUrl(url()), { max: 1 })',
    to: 'postgres(sessionConnection(url()).url, { max: 1 })',
    tests: FILES,
  },
  {
    breaks: 'names: sessions are called as DATABASE_URL says, and the mirror does not know its own',
    file: 'src/store/connection/session.ts',
    from: "return name === '' ? own : `${own} (${name})`;",
    to: "return name === '' ? own : name;",
    tests: ['test/daemon/sessions.e2e.test.ts'],
  },
  {
    breaks: 'readyz: a rejected login is not said where many statements wait',
    file: 'src/daemon/health.ts',
    from: '    } catch (error) {\n      return remediedText(error, sql);',
    to: '    } catch (error) {\n      return error === null ? remediedText(error, sql) : null;',
    tests: ['test/daemon/refused.pg.test.ts'],
  },
  {
    breaks: 'tls: a file that is away ends the daemon as its queues connect',
    file: 'src/queues/postgres-queues.ts',
    from: 'connectionString: loneUrl(present()),',
    to: 'connectionString: sessionConnection(present()).url,',
    tests: FILES,
  },
  {
    breaks: 'tls: a file that is away ends the daemon as Redis is connected to',
    file: 'src/queues/backend.ts',
    from: 'new Redis(withoutTls(url()), { lazyConnect: true })',
    to: 'openRedis(url(), { lazyConnect: true })',
    tests: FILES,
  },
  {
    breaks: 'queues: a Redis that is away is asked again and again',
    file: 'src/queues/backend.ts',
    from: 'pinging ??= connection',
    to: 'pinging = connection',
    tests: ['test/queues/redis-away.test.ts'],
  },
  {
    breaks: 'login: the file of the URL may lead some connections to another database',
    file: 'src/daemon/database.ts',
    from: "return `${scheme}${login === undefined ? '' : `${login}@`}${place}`;",
    to: 'return source.read();',
    tests: ['test/daemon/present-url.test.ts'],
  },
  {
    breaks: 'read-only: sessions that began so are kept',
    file: 'src/store/connection/db.ts',
    from: "where current_setting('transaction_read_only') = 'on'`",
    to: 'where false`',
    tests: ['test/store/read-only.pg.test.ts'],
  },
  {
    breaks: 'read-only: sessions are made anew whatever rejects writes',
    file: 'src/queues/store-pause.ts',
    from: "paused.kind !== 'read-only' ||",
    to: '',
    tests: ['test/queues/store-pause.test.ts'],
  },
  {
    breaks: 'queues: their tables are made at each start',
    file: 'src/queues/postgres-queues.ts',
    from: 'if (!(await tablesAreCurrent(client))) await',
    to: 'await',
    tests: ROTATED,
  },
  {
    breaks: 'stalled: at the first look',
    file: 'src/daemon/watches.ts',
    from: 'const CHECKS = 5;',
    to: 'const CHECKS = 1;',
    tests: ['test/daemon/stalled.test.ts'],
  },
];
