import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path/posix';
import { expect, test } from 'vitest';
import { codeBlocks as blocksOfCode, DOCUMENTS } from '../../ops/docs/blocks.ts';
import { markedIn, rewritten } from '../../ops/docs/marked.ts';
import { outputs } from '../../ops/docs/outputs.ts';
import { codeBlocks, PAGES, read, ROOT } from '../docs/markdown.ts';
import { callsIn, checkCall, howRun, LINES, NOT_RUN } from '../docs/shell.ts';

const blocks = blocksOfCode();

test.each([...(await outputs())])('%s is up to date with `npm run docs`', (file, text) => {
  // Compared here, because a difference of thousands of lines says no more than the name.
  expect(read(file) === text).toBe(true);
});

test('every block from the code is in a document, and only the listed documents contain any', () => {
  expect(DOCUMENTS.flatMap((document) => markedIn(read(document))).toSorted()).toEqual(
    Object.keys(blocks).toSorted(),
  );
  expect(PAGES.filter((page) => markedIn(read(page)).length > 0).toSorted()).toEqual(DOCUMENTS.toSorted());
});

test('only text between markers is replaced, and a marker without a block is an error', () => {
  const marked = (inside: string) =>
    `a\n<!-- b c, written by \`npm run docs\` -->\n${inside}<!-- end of b c -->\nd\n`;
  expect(rewritten(marked('old\nlines\n'), { 'b c': 'new' })).toBe(marked('new\n'));
  expect(() => rewritten(marked(''), {})).toThrow('no such block: b c');
});

/** Returns the anchors of a page: those of its headings, as GitHub makes them, and its explicit ones. */
function anchorsOf(page: string): string[] {
  const text = read(page).replaceAll(/^```[\s\S]*?^```$/gm, '');
  const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
  return [...headings, ...[...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id)];
}

test('every link leads to an existing file and heading', () => {
  const links = PAGES.flatMap((page) =>
    [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => [page, target] as const),
  ).filter(([, target]) => !/^https?:/.test(target));
  expect(links.length).toBeGreaterThan(20);
  const broken = links.filter(([page, target]) => {
    const [path = '', anchor] = target.split('#');
    const file = path === '' ? page : join(dirname(page), path);
    return !existsSync(new URL(file, ROOT)) || (anchor !== undefined && !anchorsOf(file).includes(anchor));
  });
  expect(broken).toEqual([]);
});

test('every page can be reached from the README', () => {
  const seen = new Set(['README.md']);
  for (const page of seen)
    for (const [, target = ''] of read(page).matchAll(/\]\(([^)\s#]+\.md)[^)]*\)/g))
      if (!target.startsWith('http')) seen.add(join(dirname(page), target));
  expect(PAGES.filter((page) => !seen.has(page))).toEqual([]);
});

test.each(codeBlocks('sh'))('$page:$line: the shell can parse it', ({ text }) => {
  expect(spawnSync('bash', ['-n'], { input: text, encoding: 'utf8' }).stderr).toBe('');
});

test('every call of the program has valid arguments, in blocks and within sentences', () => {
  const spoken = PAGES.flatMap((page) =>
    [...read(page).matchAll(/`((?:npm start|catalog-mirror) [^`\n]*)`/g)].map(([, text = '']) => ({
      where: page,
      text,
    })),
  );
  const calls = [...LINES, ...spoken].flatMap(({ where, text }) =>
    callsIn(text).map((call) => ({ where, call })),
  );
  expect(calls.length).toBeGreaterThan(30);
  const refused = calls
    .filter(({ call }) => !call.some((word) => /^[<[…]/.test(word)))
    .flatMap(({ where, call }) => {
      try {
        checkCall(call);
        return [];
      } catch (error) {
        return [`${where}: ${call.join(' ')}: ${String(error)}`];
      }
    });
  expect(refused).toEqual([]);
});

test.each(LINES.filter((line) => howRun(line) !== undefined))(
  '$where: $text is not run, but holds',
  (line) => {
    expect(() => howRun(line)?.check(line.text)).not.toThrow();
  },
);

test('every reason for not running a command applies to one', () => {
  const used = new Set(LINES.map((line) => howRun(line)));
  expect(NOT_RUN.filter((reason) => !used.has(reason)).map(({ because }) => because)).toEqual([]);
});

test('every npm script that a page names exists', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const named = PAGES.flatMap((page) =>
    [...read(page).matchAll(/\bnpm (?:run ([a-z]+(?::[a-z-]+)?)|(test|start))\b/g)].map(
      ([, run, own]) => run ?? own ?? '',
    ),
  );
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
});
