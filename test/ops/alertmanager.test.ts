import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

const FOLDER = new URL('../../ops/alertmanager/', import.meta.url);
const FILE = 'alertmanager.yml';
const configuration = readFileSync(new URL(FILE, FOLDER), 'utf8');
const { inhibit_rules: inhibitions } = parse(configuration) as {
  inhibit_rules: { source_matchers: string[]; target_matchers: string[]; equal: string[] }[];
};
const rules = readFileSync(new URL('../prometheus/alerts.yml', FOLDER), 'utf8');

test('a mirror without a daemon inhibits only its own alerts, and never the alert that says so', () => {
  expect(inhibitions.length).toBe(2);
  for (const { source_matchers, target_matchers, equal } of inhibitions) {
    expect(equal).toEqual(['job']);
    const [, source = ''] = /^alertname="(\w+)"$/.exec(source_matchers[0] ?? '') ?? [];
    expect(rules).toContain(`- alert: ${source}\n`);
    expect(target_matchers[0]).toBe('alertname=~"CatalogMirror.+"');
    const [, , not = ''] = /^alertname!(=|=~|~)"(.+)"$/.exec(target_matchers[1] ?? '') ?? [];
    expect(source).toMatch(new RegExp(`^(?:${not})$`));
    expect('CatalogMirrorAbsent').toMatch(new RegExp(`^(?:${not})$`));
  }
});

test('the file holds no credential, only where it is', () => {
  expect(configuration).not.toMatch(/^\s*(?:- )?(?:\w*password|\w*key|\w*token|\w*secret|api_url): /m);
  expect(configuration).toMatch(/_file: \/etc\/alertmanager\/secrets\//);
});

describe.skipIf(spawnSync('amtool', ['--version']).error !== undefined)('amtool', () => {
  const amtool = (...args: string[]) => {
    const { status, stdout } = spawnSync('amtool', args, { cwd: FOLDER, encoding: 'utf8' });
    return { status, stdout };
  };

  test('finds no fault in the configuration', () => {
    expect(amtool('check-config', FILE)).toMatchObject({ status: 0 });
  });

  const severities = [
    ...new Set([...rules.matchAll(/severity: (\w+) /g)].map(([, severity = '']) => severity)),
  ];
  test('there are two urgencies', () => expect(severities.toSorted()).toEqual(['page', 'ticket']));

  test.each([
    ['page', 'on-call'],
    ['ticket', 'tickets'],
    ['other', 'tickets'],
  ])('sends severity %s to %s', (severity, receiver) => {
    const routed = amtool(
      'config',
      'routes',
      'test',
      `--config.file=${FILE}`,
      `severity=${severity}`,
      'job=a',
    );
    expect(routed).toEqual({ status: 0, stdout: `${receiver}\n` });
  });
});
