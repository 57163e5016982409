import { execFileSync } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Builds the mirror's process into a folder, as the image has it: what strips the types at each start would count as
 * its memory. By a process of its own: Linux counts the memory of whoever starts a process as the most that this one
 * ever had. Returns the program's path.
 */
export function buildMirrorProcess(folder: string): string {
  const out = join(folder, 'dist');
  const build = [join(ROOT, 'ops/program/main.ts'), out, 'bench/ingest/mirror-process.ts'];
  execFileSync(process.execPath, build, { stdio: 'inherit' });
  copyFileSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
  return join(out, 'mirror-process.js');
}

/** How the image and `npm start` run Node.js. */
export const NODE_FLAGS = ['--max-semi-space-size=4'];
