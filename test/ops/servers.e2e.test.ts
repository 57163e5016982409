import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { connect } from '../../src/store/connection/db.ts';
import { sqlState } from '../../src/store/connection/sql-errors.ts';
import { startHere, temporaryFolder } from '../embedded/harness.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/net.ts';
import { runProgram } from '../support/process.ts';
import { hasRedisServer } from '../support/redis-server.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const { services } = parse(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8'), { merge: true }) as {
  services: { redis: { command: string[]; healthcheck: { test: string[] } } };
};

/** `\getenv` requires psql 15. */
const hasPsql = Number(/ (\d+)/.exec(spawnSync('psql', ['--version']).stdout?.toString() ?? '')?.[1]) >= 15;
const PASSWORD = `it's "one" $word`;

test.runIf(hasPsql)(
  'the script of the Postgres container creates an unprivileged owner, which is all that is needed',
  async () => {
    const cluster = await startHere(join(await temporaryFolder(), 'pg'));
    const { hostname, port, password } = new URL(cluster.url);
    const env = { PATH: process.env['PATH'], PGHOST: hostname, PGPORT: port, PGPASSWORD: password };
    await run(join(ROOT, 'ops/postgres/owner.sh'), [], { env: { ...env, POSTGRES_PASSWORD: PASSWORD } });

    const url = new URL(`postgres://catalog_mirror@${hostname}:${port}/catalog`);
    url.password = encodeURIComponent(PASSWORD);
    const sql = connect(url.href, { max: 1 });
    onTestFinished(() => sql.end());
    const roles = await sql`select rolname, rolcanlogin, rolsuper or rolcreaterole or rolcreatedb or
    rolreplication or rolbypassrls as mighty from pg_roles where rolname ~ '^catalog_' order by rolname`;
    expect([...roles]).toEqual([
      { rolname: 'catalog_mirror', rolcanlogin: true, mighty: false },
      { rolname: 'catalog_reader', rolcanlogin: false, mighty: false },
      { rolname: 'catalog_watcher', rolcanlogin: false, mighty: false },
    ]);
    const superuser = connect(cluster.url, { max: 1 });
    onTestFinished(() => superuser.end());
    const refused = await superuser`select 1`.then(() => null, sqlState);
    expect(refused).toBe('28P01');

    const demo = await runProgram(['demo', '--once', '--skus', '100'], { DATABASE_URL: url.href });
    expect(demo, `stderr: ${demo.stderr}`).toMatchObject({ code: 0 });
    const [row] = await sql`select count(*)::int > 0 as priced,
    has_table_privilege('catalog_reader', 'catalog.prices', 'select') as readable,
    has_table_privilege('catalog_watcher', 'catalog.watchlist', 'insert') as watchable from catalog.prices`;
    expect(row).toEqual({ priced: true, readable: true, watchable: true });
  },
);

test.runIf(hasRedisServer)(
  'the Redis container requires the password without showing it in the list of processes',
  async () => {
    const folder = await temporaryFolder();
    const file = join(folder, 'redis_password');
    writeFileSync(file, 'c0ffee\n');
    const here = (word: string) => word.replaceAll('$$', '$').replaceAll('/run/secrets/redis_password', file);
    const port = await freePort();
    const [command = '', ...args] = services.redis.command.map(here);
    const server = spawn(command, [...args, '--port', String(port), '--bind', '127.0.0.1', '--dir', folder], {
      stdio: 'ignore',
    });
    const exited = once(server, 'exit');
    onTestFinished(async () => {
      server.kill('SIGKILL');
      await exited;
    });
    const shell = async (line: string) =>
      (await run('bash', ['-c', line.replaceAll('redis-cli', `redis-cli -p ${port}`)])).stdout;
    const [, healthy = ''] = services.redis.healthcheck.test.map(here);
    await eventually(() => shell(healthy), { what: 'Redis is healthy' });
    expect(await shell('redis-cli ping')).toContain('NOAUTH');
    expect(await shell('REDISCLI_AUTH=wrong redis-cli ping 2>&1')).toContain('NOAUTH');
    const policy = await shell('REDISCLI_AUTH=c0ffee redis-cli config get maxmemory-policy');
    expect(policy).toContain('noeviction');
    if (process.platform !== 'linux') return;
    const words = readFileSync(`/proc/${server.pid}/cmdline`, 'utf8');
    expect(words).toMatch(/^redis-server/);
    expect(words).not.toContain('c0ffee');
  },
);
