import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readArguments } from '../../src/cli/command.ts';
import { loadCommands } from '../../src/cli/commands.ts';
import { REASON_CODES, type ReasonCode, runbookOf } from '../../src/status/reason.ts';
import { SCAN_WITHIN_MS } from '../../src/store/connection/db.ts';
import { SESSION } from '../../src/store/connection/session.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { ALERT_RULES } from './expressions.ts';

const COMMANDS = await loadCommands();

const RUNBOOKS = new URL('../../ops/runbooks/', import.meta.url);
/** What only a running daemon can be asked. */
const ADDRESS = 'http://127.0.0.1:9464';
const PATHS = ['/metrics', '/readyz', '/livez'];

const books = readdirSync(RUNBOOKS).map(
  (file) => [file, readFileSync(new URL(file, RUNBOOKS), 'utf8')] as const,
);
const blocks = books.flatMap(([file, book]) =>
  [...book.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text = '']) => [file, text] as const),
);
const commands = blocks.flatMap(([file, text]) =>
  text
    .trim()
    .split('\n')
    .map((line): [string, string] => [file, line]),
);
/** Commands of the program, in blocks and within sentences. */
const own = books.flatMap(([file, book]) =>
  [...book.matchAll(/(?:npm start --|catalog-mirror) ([a-z]+[^`;\n]*)/g)].map(
    ([, words = '']): [string, string] => [file, words.trim()],
  ),
);

test('there are commands to try', () => {
  expect(commands.length).toBeGreaterThan(20);
  expect(own.length).toBeGreaterThan(20);
});

test.each(blocks)('%s: the shell can read its commands', (_, text) => {
  expect(spawnSync('bash', ['-n'], { input: text, encoding: 'utf8' }).stderr).toBe('');
});

test.each(own)('%s: the program knows `%s`', (_, words) => {
  const [name = '', ...args] = words.split(/\s+/);
  const command = COMMANDS.get(name);
  expect([...COMMANDS.keys()]).toContain(name);
  if (command !== undefined) expect(readArguments(command, args)).toHaveProperty('values');
});

test.each(commands.filter(([, line]) => line.startsWith('curl')))('%s: %s', async (_, line) => {
  const [, url = '', pattern = ''] = /^curl -sSf? (\S+)(?: \| grep (?:-E )?(.*))?$/.exec(line) ?? [];
  expect(PATHS.map((path) => ADDRESS + path)).toContain(url);
  if (pattern === '') return;
  const metrics = await createMetrics({ version: '1' }).text();
  const said = spawnSync('bash', ['-c', line.replace(/^curl -sSf \S+ \| /, '')], {
    input: metrics,
    encoding: 'utf8',
  });
  expect(said.stdout.split('\n').length).toBeGreaterThan(1);
});

test.each(commands.filter(([, line]) => line.startsWith('curl')))(
  '%s: that nobody answers, or with an error, is seen behind a pipe, too: %s',
  (_, line) => {
    // The reasons of /readyz come with a 503.
    expect(line).toMatch(line.includes('/readyz') ? /^curl -sS / : /^curl -sSf /);
  },
);

/** Series that a sentence names: `jobs_total{queue="reprice"}`. */
const series = books.flatMap(([file, book]) =>
  [...book.matchAll(/`(\w+)\{([^}`]+)\}/g)].map(([, name = '', labels = '']): [string, string, string[]] => [
    file,
    name,
    labels.split(','),
  ]),
);

test.each(series)('%s: %s has series with %j', async (_, name, labels) => {
  const lines = (await createMetrics({ version: '1' }).text())
    .split('\n')
    .filter((line) => line.startsWith(`catalog_mirror_${name}{`));
  expect(lines.filter((line) => labels.every((label) => line.includes(label)))).not.toEqual([]);
});

/** Settings of the sessions of others. */
const OF_OTHERS = ['snapshot-held.md: idle_in_transaction_session_timeout'];

test('no advice is to change a setting that each session of the mirror pins: that changes nothing', () => {
  const named = books.flatMap(([file, book]) =>
    Object.keys(SESSION)
      .filter((setting) => new RegExp(String.raw`\b${setting}\b`, 'i').test(book))
      .map((setting) => `${file}: ${setting}`),
  );
  expect(named).toEqual(OF_OTHERS);
});

test('what a count may take is what the driver grants a scan', () => {
  const [, book = ''] = books.find(([file]) => file === 'counts-old.md') ?? [];
  expect(book).toContain(`no answer for\n  ${SCAN_WITHIN_MS / 60_000} minutes`);
});

test('what breaks a mirror is in the runbook of that, by the code that status gives it', () => {
  const page = readFileSync(new URL('../../docs/status.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `([a-z-]+)` \| ([^|]*) \|/gm)];
  const breaking = rows.flatMap(([, code = '', states = '']) => (states.includes('`broken`') ? [code] : []));
  const [, book = ''] = books.find(([file]) => file === 'broken.md') ?? [];
  const named = [...book.matchAll(/^- `([a-z-]+)`:/gm)].map(([, code = '']) => code);
  expect(named.toSorted()).toEqual(breaking.toSorted());
  expect(named.filter((code) => !(REASON_CODES as readonly string[]).includes(code))).toEqual([]);
});

test('a reason that an alert is about leads to the same runbook as the alert', () => {
  const led = ALERT_RULES.flatMap(({ expr, annotations }) =>
    [...expr.matchAll(/state_reason\{code=~?"([^"]+)"\}/g)].flatMap(([, codes = '']) =>
      codes.split('|').map((code) => {
        const file = /[\w-]+\.md$/.exec(annotations?.['runbook_url'] ?? '')?.[0];
        return [code, file, runbookOf({ code: code as ReasonCode, level: 'degraded', text: '', hint: null })];
      }),
    ),
  );
  expect(led.length).toBeGreaterThan(5);
  expect(led.filter(([, ofAlert, ofReason]) => ofAlert !== ofReason)).toEqual([]);
});

test('there is no other kind of command', () => {
  const others = commands.filter(([, line]) => !/^(?:npm start -- \w|curl -sSf? )/.test(line));
  expect(others.map(([, line]) => line)).toEqual(["df -h    # on the database's host"]);
});
