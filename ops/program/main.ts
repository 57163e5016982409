import { rmSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { bundle, ENTRIES, licencesOf, PACKAGES } from './bundle.ts';

/*
 * Writes what the image and the package run, from src and the installed packages, or other programs in the same way:
 *
 *   node ops/program/main.ts [dist [file.ts …]]
 *
 * The program contains the packages that it uses: Node.js then loads a few dozen files at a start, instead of seven hundred. What
 * other programs import (`exports` in package.json) leaves packages to them.
 */

const [dist = join(import.meta.dirname, '../../dist'), ...others] = process.argv.slice(2);
const folder = resolve(dist);

rmSync(folder, { recursive: true, force: true });
if (others.length > 0)
  await bundle(Object.fromEntries(others.map((file) => [basename(file, '.ts'), file])), folder);
else {
  const packages = await bundle({ main: 'src/main.ts' }, folder);
  writeFileSync(join(folder, 'LICENSES.txt'), licencesOf(packages));
  // By itself, because an older Node.js has to be able to read all of it.
  await bundle({ bin: 'src/bin.ts' }, folder);
  await bundle(Object.fromEntries(ENTRIES.map((entry) => [entry, `src/${entry}.ts`])), folder, PACKAGES);
}
