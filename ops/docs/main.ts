import { readFileSync, writeFileSync } from 'node:fs';
import { codeBlocks, DOCUMENTS } from './blocks.ts';
import { rewritten } from './marked.ts';

/* npm run docs: writes what the documents have from the code into them, between their markers. */
const blocks = await codeBlocks();
for (const document of DOCUMENTS) {
  const file = new URL(`../../${document}`, import.meta.url);
  writeFileSync(file, rewritten(readFileSync(file, 'utf8'), blocks));
}
