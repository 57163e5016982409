import { writeFileSync } from 'node:fs';
import { fileOf, outputs } from './outputs.ts';

/* npm run docs: writes everything in this repository that comes from the code. */
for (const [path, text] of await outputs()) writeFileSync(fileOf(path), text);
