import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { LogEvent } from '../../src/declared/log-event.ts';
import { LOG_EVENTS } from '../../src/declared/log-events.ts';
import { TASKS } from '../../src/store/ledger/tasks.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');
const events: readonly (readonly [string, LogEvent])[] = Object.entries(LOG_EVENTS);
const ALARMS = new Set(['warn', 'error', 'fatal']);

/** The source code that logs: all of src except the declarations. */
const logging = readdirSync(new URL('src', ROOT), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.startsWith('declared/'))
  .map((file) => read(`src/${file}`))
  .join('\n');

test('every declared event is logged somewhere (the compiler rejects undeclared ones)', () => {
  const unused = events.filter(([name]) => {
    const [task = '', end] = name.split('.');
    const ofTask = (TASKS as readonly string[]).includes(task) && logging.includes(`\`\${task}.${end}\``);
    return !ofTask && !logging.includes(`'${name}'`);
  });
  expect(unused.map(([name]) => name)).toEqual([]);
});

test('every declared event is named by a test, so it can still happen', () => {
  const tests = readdirSync(new URL('test', ROOT), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.startsWith('mutants/'))
    .map((file) => read(`test/${file}`))
    .join('\n');
  const unnamed = events.filter(([name]) => {
    const [task = '', end] = name.split('.');
    // Tests that wait for the end of any task name these events with a variable.
    const ofTask =
      (TASKS as readonly string[]).includes(task) &&
      ['done', 'failed', 'postponed', 'recovered'].includes(end ?? '');
    return !ofTask && !new RegExp(`['":]${name}['"]`).test(tests);
  });
  expect(unnamed.map(([name]) => name)).toEqual([]);
});

test('every warning says what comes next, and no field of a duration lacks its unit', () => {
  const silent = events.filter(
    ([, { levels, next }]) => levels.some((level) => ALARMS.has(level)) && next === null,
  );
  expect(silent.map(([name]) => name)).toEqual([]);
  const fields = new Set(events.flatMap(([, event]) => event.fields));
  expect([...fields].filter((field) => /^(?:ms|seconds|duration|elapsed|wait|time)$/i.test(field))).toEqual(
    [],
  );
});

test('the page about the log names the members that every line has', () => {
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  createLogger({ level: 'info', secrets: () => [], destination }).info({ event: 'app.started' });
  const [, said = ''] = /^.*Every line has ((?:.|\n)*?)\. From/m.exec(read('ops/logs.md')) ?? [];
  const members = Object.keys(JSON.parse(lines.join('')) as object);
  expect(members.filter((member) => !said.includes(`\`${member}\``))).toEqual([]);
});

test('every event that the troubleshooting page or a runbook names is declared', () => {
  const runbooks = readdirSync(new URL('ops/runbooks', ROOT)).map((file) => read(`ops/runbooks/${file}`));
  const prefixes = new Set(events.map(([name]) => name.split('.')[0]));
  const named = [read('docs/troubleshooting.md'), ...runbooks].flatMap((text) =>
    [...text.matchAll(/`([a-z-]+)\.([a-z-]+)`/g)]
      .filter(([, prefix]) => prefixes.has(prefix ?? ''))
      .map(([, prefix, end]) => `${prefix}.${end}`),
  );
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((name) => !Object.hasOwn(LOG_EVENTS, name))).toEqual([]);
});
