import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { NODE_FLAGS } from '../../src/launch.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const KEPT_LINES = 200;

export type Env = Readonly<Record<string, string | undefined>>;

/** A daemon in its own process, which is restarted whenever it has ended. */
export class Daemon {
  readonly name: string;
  /** Ends that were not requested, each with its last lines. */
  readonly unexpected: string[] = [];
  readonly lines: string[] = [];
  starts = 0;
  #env: Env;
  #child: ChildProcess | null = null;
  #ending = false;
  #stopped = false;

  constructor(name: string, env: Env) {
    this.name = name;
    this.#env = env;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  get isPaused(): boolean {
    return this.#stopped;
  }

  start(): void {
    const child = spawn(process.execPath, [...NODE_FLAGS, MAIN, 'run'], {
      env: { PATH: process.env['PATH'], ...this.#env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.starts += 1;
    this.#child = child;
    this.#ending = false;
    this.#stopped = false;
    for (const stream of [child.stdout, child.stderr])
      createInterface({ input: stream }).on('line', (line) => {
        this.lines.push(line);
        if (this.lines.length > KEPT_LINES) this.lines.shift();
      });
    child.once('exit', (code, signal) => {
      if (this.#child !== child || this.#ending) return;
      this.unexpected.push(
        `${this.name} ended with ${String(code ?? signal)}: ${this.lines.slice(-3).join(' | ')}`,
      );
      this.start();
    });
  }

  /** Freezes the process, as on a host that sleeps. */
  pause(): void {
    this.#stopped = this.#child?.kill('SIGSTOP') ?? false;
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
    this.#stopped = false;
  }

  /** Ends the process by this signal, and waits until it is gone. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    this.#ending = true;
    const exited = once(child, 'exit');
    this.resume();
    child.kill(signal);
    await exited;
  }
}

/** Returns the resident memory in bytes and the open files of a process; null if it is gone. Linux only. */
export function footprint(pid: number | null): { readonly rss: number; readonly files: number } | null {
  try {
    const status = readFileSync(`/proc/${String(pid)}/status`, 'utf8');
    const kilobytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]);
    return { rss: kilobytes * 1024, files: readdirSync(`/proc/${String(pid)}/fd`).length };
  } catch {
    return null;
  }
}
