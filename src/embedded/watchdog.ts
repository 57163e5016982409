import { spawn } from 'node:child_process';
import { CHILD_ENV } from './command.ts';
import type { EmbeddedLog } from './reports.ts';

/**
 * Ends the server when its owner is gone: stdin is a pipe that only the owner holds, so that its end of file is the
 * owner's death, however that came. The last line on stdin is the server's pid. A shell, because it is a hundredth of
 * a Node in memory and needs no file of its own in the published package. Before it signals it looks whether that pid
 * still is the server: by its working directory where there is a /proc, by its being alive elsewhere.
 */
const SCRIPT = `
dir=$1
trap '' HUP INT TERM
pid=
while IFS= read -r line; do pid=$line; done
[ -n "$pid" ] || exit 0
running() {
  if [ -d /proc/self ]; then [ "$(readlink "/proc/$pid/cwd")" = "$dir" ]; else kill -0 "$pid"; fi
}
running || exit 0
kill -INT "$pid"
waited=0
while running && [ "$waited" -lt 90 ]; do
  sleep 1
  waited=$((waited + 1))
  if [ "$waited" -eq 60 ]; then kill -QUIT "$pid"; fi
done
`;

export interface Watchdog {
  readonly pid: number | undefined;
  /** Tells the watchdog which server it guards from now on. */
  guard(serverPid: number): void;
  /**
   * Lets it go; resolves when it has ended. Call this once the server is down: otherwise the watchdog shuts it down.
   */
  dismiss(): Promise<void>;
}

/**
 * Starts the watchdog of a data directory, before its server: it must be there for the server's whole life. It has a
 * session of its own, so that a Ctrl-C in the terminal reaches the owner alone.
 *
 * @param home the data directory's real path, which is the server's working directory
 */
export function startWatchdog(home: string, log: EmbeddedLog): Watchdog {
  const child = spawn('/bin/sh', ['-c', SCRIPT, 'catalog-mirror-watchdog', home], {
    detached: true,
    cwd: '/',
    env: CHILD_ENV,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  let dismissed = false;
  const ended = new Promise<void>((resolve) => {
    const end = () => {
      // Not worth a restart: an orphan it would have stopped is found at the next start.
      if (!dismissed) log('embedded.watchdog-lost', { pid: child.pid });
      resolve();
    };
    child.once('exit', end);
    child.once('error', end);
  });
  // Writing to a watchdog that was killed fails; its end is reported above.
  child.stdin.on('error', () => {});
  child.unref();
  // The typings know a Writable; it is a socket, which would keep an owner alive that forgot to stop.
  if ('unref' in child.stdin && typeof child.stdin.unref === 'function') child.stdin.unref();
  return {
    pid: child.pid,
    guard(serverPid) {
      child.stdin.write(`${serverPid}\n`);
    },
    async dismiss() {
      dismissed = true;
      child.ref();
      child.stdin.end();
      await ended;
    },
  };
}
