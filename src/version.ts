import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { dirname } from 'node:path';

// Nearest above this file, in the sources as in what is built of them.
const manifest = findPackageJSON('..', import.meta.url);
if (manifest === undefined) throw new Error('the package.json of catalog-mirror is missing');

/** The folder of the package: what is no program (`drizzle`) is found in it. */
export const PACKAGE = dirname(manifest);

export const VERSION: string = (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
