import { EmbeddedError } from './errors.ts';

/** The user that Postgres runs as where it cannot run as the user of this process. */
export interface Account {
  uid: number;
  gid: number;
}

const SERVICE_USERS = ['postgres', 'nobody'];

/** The users of an `/etc/passwd`, by name. Lines that are not of its form are passed over. */
export function parsePasswd(text: string): Map<string, Account> {
  const users = new Map<string, Account>();
  for (const line of text.split('\n')) {
    const match = /^([^:#]+):[^:]*:(-?\d+):(-?\d+):/.exec(line);
    if (!match?.[1]) continue;
    // macOS writes nobody's ids as -2; the system calls want them unsigned.
    users.set(match[1], { uid: Number(match[2]) >>> 0, gid: Number(match[3]) >>> 0 });
  }
  return users;
}

/**
 * Decides who runs Postgres: null means this process's own user. Postgres refuses to run as root, so under root an
 * existing data directory's owner is taken, else the user `postgres`, else `nobody`.
 *
 * @throws EmbeddedError `no-service-user`
 */
export function chooseAccount(input: {
  euid: number;
  passwd: string;
  clusterOwner: Account | null;
}): Account | null {
  if (input.euid !== 0) return null;
  if (input.clusterOwner && input.clusterOwner.uid !== 0) return input.clusterOwner;
  const users = parsePasswd(input.passwd);
  for (const name of SERVICE_USERS) {
    const user = users.get(name);
    if (user && user.uid !== 0) return user;
  }
  throw new EmbeddedError(
    'no-service-user',
    'Postgres does not run as root, and this machine has neither a user postgres nor a user nobody',
    'start as an ordinary user, create a user postgres, or set DATABASE_URL',
  );
}
