import { escapeIdentifier } from 'pg';
import { judgeRoles } from '../../store/setup/occupied.ts';
import { rightsRemedy, rightsText } from '../../store/setup/privileges.ts';
import { type CheckResult, fail, ok, warn } from './check.ts';
import type { PostgresFacts } from './postgres-facts.ts';

/** Returns the lines about schemas, rights and roles: what the mirror and its readers may do. Pure. */
export function rightsLines(facts: PostgresFacts, queues: 'redis' | 'postgres'): CheckResult[] {
  const { role, database, mayCreate, mayTemp, migrated, owns } = facts;
  const lacking = queues === 'postgres' ? [...facts.lacking, ...facts.queueLacking] : facts.lacking;
  const findings: CheckResult[] = [];
  const grant = (right: string) =>
    `GRANT ${right} ON DATABASE ${escapeIdentifier(database)} TO ${escapeIdentifier(role)}`;
  if (!mayCreate && !migrated)
    findings.push(fail('rights', `${role} has no CREATE on the database`, grant('CREATE')));
  else if (!mayCreate && queues === 'postgres' && facts.queueTablesCurrent === false)
    findings.push(
      fail(
        'rights',
        `${role} has no CREATE on the database, and the tables of the queues are still to be created or updated`,
        `${grant('CREATE')}, for one start or \`migrate\``,
      ),
    );
  else if (!mayCreate && facts.pending > 0)
    findings.push(
      warn('rights', `${role} has no CREATE on the database; a migration may need it`, grant('CREATE')),
    );
  if (!mayTemp)
    findings.push(
      fail(
        'rights',
        `${role} may not create temporary tables, and manifests are staged in one`,
        grant('TEMPORARY'),
      ),
    );
  if (migrated && !owns)
    findings.push(
      fail(
        'rights',
        `the mirror's tables are not owned by ${role}`,
        'connect as the role that migrated them, or as a member of it',
      ),
    );
  const rights = { lacking, misowned: facts.misowned };
  const lacks = owns ? rightsText(rights) : null;
  if (lacks !== null)
    findings.push(fail('rights', lacks, rightsRemedy(rights, escapeIdentifier(facts.acting))));
  if (findings.length === 0) findings.push(ok('rights', `${role} has the privileges the mirror needs`));
  return [...occupiedLines(facts), ...findings, ...rolesLines(facts)];
}

/** The mirror never uses others' functions and tables by name, but in its own schemas they would pass for its own. */
export function creatorsLine({ creators, migrated }: PostgresFacts): CheckResult {
  const named = creators.map(({ place, roles }) => `${roles.join(', ')} in ${place}`).join('; ');
  if (creators.length === 0) return ok('creators', "nobody else may create in this database's schemas");
  const inOurs = creators.some(({ ours }) => ours);
  const mayTakeNames = !migrated && creators.some(({ place }) => place === 'the database');
  return inOurs || mayTakeNames
    ? warn(
        'creators',
        `others may create: ${named}`,
        inOurs
          ? "REVOKE CREATE ON SCHEMA … FROM …: what is created in the mirror's schemas runs with its rights"
          : 'REVOKE CREATE ON DATABASE … FROM …, or migrate first: who makes a schema with a name of the mirror stops its start',
      )
    : ok('creators', `others may create: ${named}; nothing there is used by the mirror`);
}

/** Reports names of the mirror that are taken. In that case `run` and `migrate` end before they create anything. */
function occupiedLines({ occupied }: PostgresFacts): CheckResult[] {
  return occupied.map(({ kind, text, remedy }) =>
    fail(kind === 'role-of-another' ? 'roles' : 'schemas', text, remedy),
  );
}

function rolesLines(facts: PostgresFacts): CheckResult[] {
  // Before the first migration, these roles are reported as being in the mirror's way.
  if (facts.occupied.some(({ kind }) => kind === 'role-of-another')) return [];
  const tooMuch = judgeRoles(facts.roles).map(({ text, remedy }) => warn('roles', text, remedy));
  const logins = facts.roles.filter(({ canLogin }) => canLogin).map(({ role }) => role);
  const login = warn(
    'roles',
    `${logins.join(' and ')} can log in: whatever logs in so may do what the mirror's readers may`,
    `ALTER ROLE … NOLOGIN, and GRANT it to the roles that are to read`,
  );
  const line = roles(facts);
  const members = facts.roles.flatMap(({ role, members: names }) =>
    names.map((name) => `${name} in ${role}`),
  );
  const shown =
    facts.migrated || members.length === 0 || line.level !== 'OK'
      ? line
      : ok('roles', `${line.text}; who is in them will read this catalog, too: ${members.join(', ')}`);
  return [shown, ...tooMuch, ...(logins.length === 0 ? [] : [login])];
}

function roles({ hasReader, hasWatcher, mayCreateRoles, migrated, rightsWhole }: PostgresFacts): CheckResult {
  const missing = [hasReader ? '' : 'catalog_reader', hasWatcher ? '' : 'catalog_watcher'].filter(
    (name) => name !== '',
  );
  if (missing.length === 0 && rightsWhole === false)
    return warn(
      'roles',
      'catalog_reader or catalog_watcher lacks privileges',
      'run `catalog-mirror migrate`',
    );
  if (missing.length === 0) return ok('roles', 'catalog_reader and catalog_watcher exist');
  if (mayCreateRoles && !migrated) return ok('roles', `${missing.join(' and ')} will be created`);
  const create = missing.map((name) => `CREATE ROLE ${name}`).join('; ');
  return migrated
    ? warn(
        'roles',
        `${missing.join(' and ')} missing: sellers have no privileges`,
        mayCreateRoles
          ? 'run `catalog-mirror migrate`, which makes roles and grants'
          : `${create}; then run \`catalog-mirror migrate\`, which grants the privileges`,
      )
    : warn(
        'roles',
        `${missing.join(' and ')} missing, and this role may not create roles`,
        `${create} before the first start, which grants the privileges`,
      );
}
