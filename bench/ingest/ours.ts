import { fork } from 'node:child_process';
import { once } from 'node:events';
import { NODE_FLAGS } from './build.ts';
import type { Ended } from './mirror-process.ts';
import type { Manifest } from './peers.ts';
import type { Upstream } from './upstream.ts';

/**
 * The mirror's own way with a manifest, in a process of its own (the program that build.ts compiled): how long, and
 * the most memory.
 */
export const byMirror =
  (program: string, upstream: Upstream) =>
  async (url: string, manifest: Manifest): Promise<Ended> => {
    upstream.offer(manifest);
    const child = fork(program, [url, upstream.url], { execArgv: NODE_FLAGS });
    const exit = once(child, 'exit');
    const died = exit.then(([code]): never => {
      throw new Error(`the mirror's process ended with ${code}`);
    });
    const [ended] = (await Promise.race([once(child, 'message'), died])) as [Ended];
    await exit;
    return ended;
  };
