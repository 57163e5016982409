import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

interface Service {
  readonly image: string;
  readonly build?: string;
  readonly user?: string;
  readonly profiles?: readonly string[];
  readonly networks?: readonly string[];
  readonly volumes?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly [member: string]: unknown;
}

const text = readFileSync(new URL('../../docker-compose.yml', import.meta.url), 'utf8');
const { services } = parse(text, { merge: true }) as { services: Record<string, Service> };
const each = Object.entries(services).map(([name, service]) => ({ name, service }));

/** Images that start as root unless another user is named; all others have their own user. */
const ROOT_BY_DEFAULT = /^(?:postgres|redis):/;
/** Members that would undo the restrictions of a service. */
const OPENINGS = ['cap_add', 'privileged', 'devices', 'pid', 'ipc', 'userns_mode', 'cgroup_parent'];

describe.each(each)('compose: $name', ({ service }) => {
  test('has no capabilities, no way to get any, and a read-only root file system', () => {
    expect(service).toMatchObject({
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      read_only: true,
    });
    for (const member of OPENINGS) expect(service, `member ${member}`).not.toHaveProperty(member);
  });

  test('has limits on memory and processes', () => {
    expect(service['mem_limit']).toMatch(/^\d+[mg]$/);
    expect(service['pids_limit']).toEqual(expect.any(Number));
  });

  test('is not root, and sees only read-only files of the host', () => {
    if (ROOT_BY_DEFAULT.test(service.image)) expect(service.user).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    else expect(service.user).toBeUndefined();
    for (const volume of service.volumes ?? [])
      if (!/^[\w-]+:/.test(volume)) expect(volume).toMatch(/^\.\/ops\/[\w./-]+:\S+:ro$/);
  });

  test('has its own network with those it needs', () => {
    if (service['network_mode'] === undefined) expect(service.networks?.length).toBeGreaterThan(0);
    else expect(service['network_mode']).toMatch(/^service:/);
  });

  test('has no password in the file, unless it belongs to the sandbox', () => {
    const written = Object.entries(service.environment ?? {}).filter(
      ([name, value]) => /PASSWORD|SECRET|KEY|_URL$/.test(name) && !/^\$\{|^\/run\/secrets\//.test(value),
    );
    if (service.profiles?.includes('sandbox') !== true)
      expect(written.map(([name]) => name)).toEqual(
        written.filter(([name]) => name.startsWith('GF_SECURITY_DISABLE_')).map(([name]) => name),
      );
  });
});

test('services of the monitoring profile share no network with a database', () => {
  const databases = each.filter(({ service }) => ROOT_BY_DEFAULT.test(service.image));
  expect(databases.length).toBeGreaterThan(2);
  for (const { name, service } of each.filter((one) => one.service.profiles?.includes('monitoring')))
    for (const database of databases)
      expect(
        service.networks?.filter((network) => database.service.networks?.includes(network)),
        `${name} and ${database.name}`,
      ).toEqual([]);
});

test('nobody can sign in to Grafana, so it needs no default password', () => {
  expect(services['grafana']?.environment).toMatchObject({
    GF_AUTH_ANONYMOUS_ORG_ROLE: 'Viewer',
    GF_AUTH_BASIC_ENABLED: 'false',
    GF_AUTH_DISABLE_LOGIN_FORM: 'true',
    GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION: 'true',
  });
});

test('the daemon is not a superuser of its Postgres', () => {
  for (const name of ['postgres', 'sandbox-postgres']) {
    expect(services[name]?.environment).not.toHaveProperty('POSTGRES_USER');
    expect(services[name]?.volumes).toContain(
      './ops/postgres/owner.sh:/docker-entrypoint-initdb.d/owner.sh:ro',
    );
  }
  expect(services['sandbox-worker']?.environment?.['DATABASE_URL']).toContain('//catalog_mirror:');
});
