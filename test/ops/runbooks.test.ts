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
/** Where only a running daemon answers. */
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

test('the runbooks contain commands to try', () => {
  expect(commands.length).toBeGreaterThan(20);
  expect(own.length).toBeGreaterThan(20);
});

test.each(blocks)('%s: the shell can parse its commands', (_, text) => {
  expect(spawnSync('bash', ['-n'], { input: text, encoding: 'utf8' }).stderr).toBe('');
});

test.each(own)('%s: the program accepts `%s`', (_, words) => {
  const [name = '', ...args] = words.split(/\s+/);
  const command = COMMANDS.get(name);
  expect([...COMMANDS.keys()]).toContain(name);
  if (command !== undefined) expect(readArguments(command, args)).toHaveProperty('values');
});

test.each(commands.filter(([, line]) => line.startsWith('curl')))(
  '%s: %s reads an existing path and finds lines',
  async (_, line) => {
    const [, url = '', pattern = ''] = /^curl -sSf? (\S+)(?: \| grep (?:-E )?(.*))?$/.exec(line) ?? [];
    expect(PATHS.map((path) => ADDRESS + path)).toContain(url);
    if (pattern === '') return;
    const metrics = await createMetrics({ version: '1' }).text();
    const said = spawnSync('bash', ['-c', line.replace(/^curl -sSf \S+ \| /, '')], {
      input: metrics,
      encoding: 'utf8',
    });
    expect(said.stdout.split('\n').length).toBeGreaterThan(1);
  },
);

test.each(commands.filter(([, line]) => line.startsWith('curl')))(
  '%s: shows errors even before a pipe: %s',
  (_, line) => {
    // /readyz gives its reasons with status 503.
    expect(line).toMatch(line.includes('/readyz') ? /^curl -sS / : /^curl -sSf /);
  },
);

/** Series named in a sentence, such as `jobs_total{queue="reprice"}`. */
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

/** Settings that concern the sessions of others. */
const OF_OTHERS = ['snapshot-held.md: idle_in_transaction_session_timeout'];

test('no runbook advises changing a setting that the mirror pins in each of its sessions', () => {
  const named = books.flatMap(([file, book]) =>
    Object.keys(SESSION)
      .filter((setting) => new RegExp(String.raw`\b${setting}\b`, 'i').test(book))
      .map((setting) => `${file}: ${setting}`),
  );
  expect(named).toEqual(OF_OTHERS);
});

test('the longest count in the runbook is what the driver allows a scan', () => {
  const [, book = ''] = books.find(([file]) => file === 'counts-old.md') ?? [];
  expect(book).toContain(`no answer for\n  ${SCAN_WITHIN_MS / 60_000} minutes`);
});

test('broken.md lists exactly the codes of status that break a mirror', () => {
  const page = readFileSync(new URL('../../docs/status.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `([a-z-]+)` \| ([^|]*) \|/gm)];
  const breaking = rows.flatMap(([, code = '', states = '']) => (states.includes('`broken`') ? [code] : []));
  const [, book = ''] = books.find(([file]) => file === 'broken.md') ?? [];
  const named = [...book.matchAll(/^- `([a-z-]+)`:/gm)].map(([, code = '']) => code);
  expect(named.toSorted()).toEqual(breaking.toSorted());
  expect(named.filter((code) => !(REASON_CODES as readonly string[]).includes(code))).toEqual([]);
});

test('a reason with an alert of its own has the same runbook as the alert', () => {
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

test('the runbooks contain no other kind of command', () => {
  const others = commands.filter(([, line]) => !/^(?:npm start -- \w|curl -sSf? )/.test(line));
  expect(others.map(([, line]) => line)).toEqual(["df -h    # on the database's host"]);
});
