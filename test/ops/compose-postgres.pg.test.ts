import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, inject, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { read } from '../docs/markdown.ts';
import { createDatabase } from '../support/db.ts';

const { services } = parse(read('docker-compose.yml'), { merge: true }) as {
  services: Record<string, { healthcheck?: { test: string[] } }>;
};
const DATABASES = ['postgres', 'sandbox-postgres'];
const hasPsql = spawnSync('psql', ['--version']).status === 0;

/** Returns the status of the service's health check against the run's Postgres, with this role and database. */
async function healthOf(service: string, role: string, database: string): Promise<string> {
  const { hostname, port, password } = new URL(inject('postgresUrl'));
  const [, program = '', ...args] = services[service]?.healthcheck?.test ?? [];
  const here = args.map(
    (arg) =>
      new Map(Object.entries({ '127.0.0.1': hostname, catalog_mirror: role, catalog: database })).get(arg) ??
      arg,
  );
  const env = { ...process.env, PGPORT: port, PGPASSWORD: password };
  return await promisify(execFile)(program, here, { env }).then(
    () => 'healthy',
    (error: { stderr: string }) => error.stderr,
  );
}

test.skipIf(!hasPsql).each(DATABASES)(
  'compose: %s becomes healthy only once its role and database exist',
  async (service) => {
    const database = await createDatabase();
    onTestFinished(() => database.drop());
    const name = new URL(database.url).pathname.slice(1);
    const owner = new URL(inject('postgresUrl')).username;
    expect(await healthOf(service, owner, name)).toBe('healthy');
    expect(await healthOf(service, owner, `${name}_gone`)).toContain('does not exist');
    expect(await healthOf(service, `${name}_nobody`, name)).toMatch(/does not exist|authentication failed/);
  },
);
