import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

/**
 * Cited names that are not defined here: those of Postgres and of libraries, endings of names, an example in a
 * recipe.
 */
const OTHERS: ReadonlySet<string> = new Set([
  'autovacuum_vacuum_cost_delay',
  'autovacuum_vacuum_insert_scale_factor',
  'autovacuum_vacuum_scale_factor',
  'autovacuum_vacuum_threshold',
  'fillfactor',
  'nodejs_active_handles',
  'stryker',
  'PerMinute',
  'Seconds',
  'add_colour',
]);

/** Texts whose citations are checked: comments in src, and the documents about the code. */
const CITES = /^(src\/.*\.ts|ARCHITECTURE\.md|CONTRIBUTING\.md|docs\/internals\.md)$/;
/**
 * Where cited names may be defined. Not in migrations, which contain names that later ones drop, nor in this file.
 */
const DEFINES =
  /^(?!test\/static\/names|package-lock)([\w-]+\/.*\.(ts|js|mjs|css|json|ya?ml)|drizzle\/objects\/.*\.sql|\.env\.example|\.ci\/\w+|[\w.-]+\.(ts|json|yml)|Dockerfile)$/;
const COMMENT = /\/\*[\s\S]*?\*\/|(?<![:'"`\w/])\/\/[^\n]*/g;

const files = execFileSync('git', ['ls-files'], { encoding: 'utf8' }).split('\n');
const textOf = (path: string) => readFileSync(path, 'utf8');

function definedWords(): Set<string> {
  const words = files
    .filter((path) => DEFINES.test(path) && !path.startsWith('drizzle/meta/'))
    .flatMap((path) => {
      const comments = path.endsWith('.ts') ? COMMENT : path.endsWith('.sql') ? /--.*/g : /(?!)/g;
      return textOf(path).replaceAll(comments, '').match(/\w+/g) ?? [];
    });
  return new Set(words);
}

const words = definedWords();

/** Returns identifiers in backticks and paths of files that the code does not contain. */
function unknownNames(text: string): string[] {
  const quoted = [...text.matchAll(/`([^`\n]+)`/g)].flatMap(
    ([, code = '']) => code.match(/\b[a-z_]\w*/gi) ?? [],
  );
  const paths = text.match(/(?<![\w.*/-])\w[\w./-]*\.ts\b/g) ?? [];
  return [
    ...quoted.filter((name) => !words.has(name) && !OTHERS.has(name)),
    ...paths.filter((path) => !files.some((file) => `/${file}`.endsWith(`/${path}`))),
  ];
}

test('every name and file cited in comments and documents exists', () => {
  const found = files
    .filter((path) => CITES.test(path))
    .flatMap((path) => {
      const text = path.endsWith('.ts')
        ? (textOf(path).match(COMMENT) ?? []).join('\n')
        : textOf(path).replaceAll(/```[\s\S]*?```/g, '');
      return unknownNames(text).map((name) => `${path}: ${name}`);
    });
  expect(found).toEqual([]);
});

test('a cited name or file that does not exist is found', () => {
  expect(unknownNames('`decide` of pace/policy.ts, then `decideNoMore(limits)` of live-policy.ts')).toEqual([
    'decideNoMore',
    'live-policy.ts',
  ]);
  expect(unknownNames([...OTHERS].map((name) => `\`${name}\``).join())).toEqual([]);
});
