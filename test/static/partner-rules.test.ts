import { globSync } from 'node:fs';
import { basename } from 'node:path/posix';
import { expect, test } from 'vitest';
import { sectionOf } from '../../ops/docs/partner-rules.ts';
import { VARIABLES } from '../../src/config/config.ts';
import { OPEN } from '../conformance/open.ts';
import { ROWS } from '../conformance/rows.ts';
import { read, ROOT } from '../docs/markdown.ts';

/** Everything that people write in this repository; this file contains what the others must not. */
const TEXTS = globSync(
  [
    '{src,test,bench,ops,drizzle,docs,examples}/**/*.{ts,sql,md,yml,yaml,txt}',
    '*.{ts,md,yml,json}',
    'Dockerfile',
    '.ci/*',
  ],
  { cwd: ROOT, exclude: ['package-lock.json'] },
)
  .filter((file) => basename(file) !== 'partner-rules.test.ts' && !file.startsWith('.ci/cache'))
  .map((file) => ({ file, text: joined(read(file)) }));

/** Joins the lines of comments, because a citation may continue on the next line. */
function joined(text: string): string {
  return text.replaceAll(/\n[ \t]*(?:\*(?!\/)|\/\/|--|#)[ \t]+/g, ' ');
}

const IDS = [...Object.keys(ROWS), ...Object.keys(OPEN)];
const SECTIONS = new Set(IDS.flatMap((id) => [sectionOf(id), id.slice(0, 1)]));
const resolves = (reference: string) =>
  SECTIONS.has(reference) || IDS.some((id) => id === reference || id.startsWith(`${reference}.`));

const REFERENCE = String.raw`\d(?:\.[\w-]+)*`;
const CITATION = new RegExp(
  String.raw`\bpartner (rules?)\b(?:\s+(${REFERENCE}(?:(?:, | and | to )${REFERENCE})*))?`,
  'gi',
);

/** Returns the references of every citation in a text; a citation without any has an empty one. */
function citedIn(text: string): { few: boolean; references: string[] }[] {
  return [...text.matchAll(CITATION)].map(([, word = '', list = '']) => ({
    few: word.toLowerCase() === 'rule',
    references: list.split(/, | and | to /),
  }));
}

test('every cited partner rule is in docs/partner-rules.md', () => {
  const cited = TEXTS.flatMap(({ file, text }) => citedIn(text).map((citation) => ({ file, ...citation })));
  expect(cited.length).toBeGreaterThan(150);
  expect(cited.filter(({ references }) => !references.every(resolves))).toEqual([]);
  // The singular is for a single rule, so the form of a citation tells whether to look for a row or a section.
  const one = new Set(IDS);
  expect(
    cited.filter(({ few, references }) => few && !(references.length === 1 && one.has(references[0] ?? ''))),
  ).toEqual([]);
});

test.each([
  ['(partner rule 4.2.99)', ['4.2.99']],
  ['(partner rules 2.4, 4.7)', ['4.7']],
  [' * as of partner rules\n   * 4.2.4 to 4.2.77 and so on', ['4.2.77']],
  ['a partner rule of its own', ['']],
  ['Partner rules 7.3, 4.1 and 4.2: a code', []],
  ['(partner rules 8.cache; partner rule 8.cache.bulk). Partner rules 5.5, row by row', []],
])('in %j, these references do not resolve: %j', (text, unresolved) => {
  const references = citedIn(joined(text)).flatMap((citation) => citation.references);
  expect(references.length).toBeGreaterThan(0);
  expect(references.filter((reference) => !resolves(reference))).toEqual(unresolved);
});

test('the page has an anchor for every rule and a heading for every section', () => {
  const page = read('docs/partner-rules.md');
  const anchors = [...page.matchAll(/<a id="rule-([^"]+)"><\/a>/g)].map(([, id = '']) => id);
  expect(anchors.toSorted()).toEqual(IDS.toSorted());
  const headings = [...page.matchAll(/^##+ (\d(?:\.\d)?) /gm)].map(([, section = '']) => section);
  const withRules = new Set(Object.keys(ROWS).map((id) => sectionOf(id)));
  expect([...withRules].filter((section) => !headings.includes(section))).toEqual([]);
  expect(headings).toEqual(headings.toSorted());
});

test('every open fact has its own id, and names only existing settings', () => {
  expect(Object.keys(OPEN).filter((id) => Object.hasOwn(ROWS, id) || !id.endsWith('.open'))).toEqual([]);
  const names = new Set<string>(VARIABLES.map(({ name }) => name));
  const settings = Object.values(OPEN).flatMap(
    ({ handling }) => handling.match(/\b[A-Z]+(?:_[A-Z]+)+\b/g) ?? [],
  );
  expect(settings.length).toBeGreaterThan(3);
  expect(settings.filter((name) => !names.has(name))).toEqual([]);
});

/** Files that other programs create, by name. */
const MADE_ELSEWHERE = new Set(['notes.md']);

test('no text cites a document that is not in the repository', () => {
  const documents = new Set(TEXTS.map(({ file }) => basename(file)));
  const named = TEXTS.flatMap(({ file, text }) =>
    [...text.matchAll(/[\w./-]*\w\.md\b/g)].map(([name]) => ({ file, name })),
  );
  expect(named.length).toBeGreaterThan(100);
  const absent = named.filter(
    ({ name }) => !documents.has(basename(name)) && !MADE_ELSEWHERE.has(basename(name)),
  );
  expect(absent).toEqual([]);
});

test('no text cites a section of any other document', () => {
  const astray = TEXTS.flatMap(({ file, text }) =>
    [
      ...text.matchAll(
        /\b[Ss]pecification\b|\b[A-Z]{4,},? section \d|\([A-Z]{5,} \d[,)]|\b\d\.\d (?:rule|note)s? \d/g,
      ),
    ].map(([found]) => `${file}: ${found}`),
  );
  expect(astray).toEqual([]);
});
