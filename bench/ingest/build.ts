import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Compiles the mirror's process into a folder, as the image has it: what strips the types at each start would count as its
 * memory. Returns the program's path.
 */
export function buildMirrorProcess(folder: string): string {
  const out = join(folder, 'dist');
  mkdirSync(out, { recursive: true });
  copyFileSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const config = join(folder, 'tsconfig.json');
  writeFileSync(
    config,
    JSON.stringify({
      extends: join(ROOT, 'tsconfig.build.json'),
      compilerOptions: { rootDir: ROOT, outDir: out, typeRoots: [join(ROOT, 'node_modules/@types')] },
      include: [join(ROOT, 'bench/ingest/mirror-process.ts')],
    }),
  );
  execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', config], { stdio: 'inherit' });
  return join(out, 'bench/ingest/mirror-process.js');
}

/** How the image and `npm start` run Node.js. */
export const NODE_FLAGS = ['--max-semi-space-size=4'];
