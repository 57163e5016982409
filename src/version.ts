import { readFileSync } from 'node:fs';

/** The package's version, as its package.json says. */
export const VERSION: string = (
  JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
).version;
