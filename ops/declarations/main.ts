/*
 * Writes the declarations of what the package exports: a file for each entry, with the types that it names and no others. The
 * compiler by itself would write those of every file that these come from, and with them need types of drivers that nobody has.
 *
 *   node ops/declarations/main.ts dist
 */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { dts } from 'rolldown-plugin-dts';
import { ENTRIES } from '../program/bundle.ts';

const ROOT = join(import.meta.dirname, '../..');
const [dist = join(ROOT, 'dist')] = process.argv.slice(2);

// Within, so that comments of the bundler that name it are the same each time.
const declared = join(dist, '.declared');
try {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const project = join(import.meta.dirname, 'tsconfig.json');
  const { status } = spawnSync(process.execPath, [tsc, '-p', project, '--outDir', declared], {
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('the compiler has written no declarations');
  const bundle = await rolldown({
    input: Object.fromEntries(ENTRIES.map((entry) => [entry, join(declared, `${entry}.d.ts`)])),
    external: (id) => !id.startsWith('.') && !id.startsWith('/'),
    plugins: [dts({ dtsInput: true, emitDtsOnly: true, tsconfig: false })],
  });
  await bundle.write({ dir: dist, format: 'es', chunkFileNames: 'client/shared-[name].d.ts' });
} finally {
  rmSync(declared, { recursive: true, force: true });
}
