import { readdirSync, readFileSync } from 'node:fs';

export const ROOT = new URL('../../', import.meta.url);
export const read = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8');

/** Every page for people except the runbooks, which have their own tests. */
export const PAGES: readonly string[] = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'ops/capacity.md',
  'ops/logs.md',
  'ops/secrets/README.md',
  ...readdirSync(new URL('docs/', ROOT))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`),
];

export interface CodeBlock {
  readonly page: string;
  /** Line number of the block's start in the page. */
  readonly line: number;
  readonly text: string;
}

/** Returns the SQL within sentences and tables. */
export function spokenQueries(): CodeBlock[] {
  return PAGES.flatMap((page) =>
    read(page)
      .split('\n')
      .flatMap((text, at) =>
        [...text.matchAll(/`(SELECT [^`]*)`/g)].map(([, query = '']) => ({
          page,
          line: at + 1,
          text: query,
        })),
      ),
  );
}

/** Returns the code blocks in this language from all pages. */
export function codeBlocks(language: string): CodeBlock[] {
  return PAGES.flatMap((page) => {
    const text = read(page);
    return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
      .filter(([, of]) => of === language)
      .map(({ index, 2: inside = '' }) => ({
        page,
        line: text.slice(0, index).split('\n').length + 1,
        text: inside,
      }));
  });
}
