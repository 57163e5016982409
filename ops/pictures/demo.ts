import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from '../../test/support/eventually.ts';
import { freePort } from '../../test/support/net.ts';

const ROOT = join(import.meta.dirname, '../..');
const execFileAsync = promisify(execFile);

export interface RunningDemo extends AsyncDisposable {
  /** Host and port of its metrics. */
  readonly target: string;
  /** Rows of a query, as `catalog-mirror sql --json` prints them. */
  query(statement: string): Promise<Record<string, unknown>[]>;
}

/** A demo in a process and a folder of its own, as `npm run demo` starts it. */
export async function startDemo(options: readonly string[]): Promise<RunningDemo> {
  const folder = await mkdtemp(join(tmpdir(), 'catalog-mirror-pictures-'));
  // Run by root, the embedded Postgres is another user and has to get through this folder.
  await chmod(folder, 0o711);
  const port = await freePort();
  const at = { cwd: ROOT, env: { ...process.env, HTTP_PORT: String(port), DATA_DIR: folder } };
  const command = (...args: string[]) => [...process.execArgv, 'src/main.ts', ...args];
  const demo = spawn(process.execPath, command('demo', ...options), { ...at, stdio: 'ignore' });
  const ended = once(demo, 'exit');
  const target = `127.0.0.1:${port}`;
  const stop = async () => {
    demo.kill('SIGTERM');
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  const answers = async () => {
    if (demo.exitCode !== null) throw new Error(`the demo ended with ${demo.exitCode}`);
    return await fetch(`http://${target}/livez`).then(
      ({ ok }) => ok,
      () => false,
    );
  };
  try {
    await eventually(answers, { what: 'the demo answers', within: 60_000 });
  } catch (error) {
    await stop();
    throw error;
  }
  const query = async (statement: string) => {
    const { stdout } = await execFileAsync(process.execPath, command('sql', '--json', statement), at);
    return stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  };
  return { target, query, [Symbol.asyncDispose]: stop };
}
