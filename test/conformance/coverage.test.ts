import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { NOT_TESTED, ROWS } from './rows.ts';

const FILES = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith('.test.ts') && file !== 'coverage.test.ts')
  .map((file) => ({ file, text: readFileSync(join(import.meta.dirname, file), 'utf8') }));

/** The names of tests: the first argument of `it`, or the first cell of a row of a table at the top of the file. */
const NAME = /(?:\bit\(|^ {2}\[)\s*(['"`])(.*?)\1,/gms;
const IDS = /^(\d[\w.-]*(?:, \d[\w.-]*)*) \S/;

const names = FILES.flatMap(({ file, text }) =>
  [...text.matchAll(NAME)].map((match) => ({ file, name: match[2] ?? '' })),
);
const idsOf = (name: string): string[] => IDS.exec(name)?.[1]?.split(', ') ?? [];
const tested = new Set(names.flatMap(({ name }) => idsOf(name)));

it('every rule has a test, or a reason why it has none', () => {
  const untested = Object.keys(ROWS).filter((id) => !tested.has(id) && !Object.hasOwn(NOT_TESTED, id));
  expect(untested).toEqual([]);
});

it('no rule has both a test and a reason to have none', () => {
  expect(Object.keys(NOT_TESTED).filter((id) => tested.has(id))).toEqual([]);
});

it('every test name begins with existing rule ids', () => {
  const astray = names.filter(({ name }) => {
    const ids = idsOf(name);
    return ids.length === 0 || ids.some((id) => !Object.hasOwn(ROWS, id));
  });
  expect(astray).toEqual([]);
});

it('no test is skipped', () => {
  const switchedOff = FILES.filter(({ text }) => /\.(?:skip|only|todo|fails|runIf|skipIf)\b/.test(text));
  expect(switchedOff.map(({ file }) => file)).toEqual([]);
});
