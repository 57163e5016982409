import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from './eventually.ts';
import { freePort } from './net.ts';

/** Decides whether this machine has a PgBouncer; `.ci/tools` fetches one. */
export function hasPgBouncer(): boolean {
  try {
    execFileSync('pgbouncer', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const NOBODY = 65_534;

/** Starts a PgBouncer in front of the server of a URL, with these settings; `url` leads through it. */
export async function pgBouncer(
  to: string,
  settings: Readonly<Record<string, string | number>>,
): Promise<AsyncDisposable & { readonly url: string }> {
  const target = new URL(to);
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'pgbouncer-'));
  chmodSync(folder, 0o755);
  const file = join(folder, 'pgbouncer.ini');
  const server = `host=127.0.0.1 port=${target.port} user=${target.username} password=${decodeURIComponent(target.password)}`;
  const own = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    auth_type: 'any',
    unix_socket_dir: '',
    ...settings,
  };
  const lines = Object.entries(own).map(([name, value]) => `${name} = ${value}`);
  writeFileSync(file, `[databases]\n* = ${server}\n[pgbouncer]\n${lines.join('\n')}\n`);
  const isRoot = process.getuid?.() === 0;
  // It refuses to run as root.
  const child = spawn('pgbouncer', [file], { stdio: 'ignore', ...(isRoot && { uid: NOBODY, gid: NOBODY }) });
  const ended = once(child, 'exit');
  await eventually(() => answers(port), { what: 'PgBouncer' });
  const url = new URL(to);
  url.port = String(port);
  url.hostname = '127.0.0.1';
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
