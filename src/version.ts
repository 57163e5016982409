import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { dirname } from 'node:path';

// Finds the nearest package.json above this file, from the sources as well as from the build.
const manifest = findPackageJSON('..', import.meta.url);
if (manifest === undefined) throw new Error('the package.json of catalog-mirror is missing');

/** The package's folder, which contains the files that are not code (`drizzle`). */
export const PACKAGE = dirname(manifest);

export const VERSION: string = (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
