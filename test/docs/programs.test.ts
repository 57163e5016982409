import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { codeBlocks, read, ROOT } from './markdown.ts';

test('docs/programs.md shows exactly the examples that test/package runs with the package', () => {
  const shown = codeBlocks('ts').filter(({ page }) => page === 'docs/programs.md');
  const files = readdirSync(new URL('examples/programs/', ROOT));
  expect(shown.map(({ text }) => text).toSorted()).toEqual(
    files.map((file) => read(`examples/programs/${file}`)).toSorted(),
  );
});
