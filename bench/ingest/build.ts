import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle } from '../../ops/program/bundle.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Builds the mirror's process into a folder, as the image has it: what strips the types at each start would count as its
 * memory. Returns the program's path.
 */
export async function buildMirrorProcess(folder: string): Promise<string> {
  const out = join(folder, 'dist');
  copyFileSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
  await bundle({ 'mirror-process': 'bench/ingest/mirror-process.ts' }, out);
  return join(out, 'mirror-process.js');
}

/** How the image and `npm start` run Node.js. */
export const NODE_FLAGS = ['--max-semi-space-size=4'];
