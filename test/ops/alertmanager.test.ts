import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';

const FOLDER = new URL('../../ops/alertmanager/', import.meta.url);
const FILE = 'alertmanager.yml';
const configuration = readFileSync(new URL(FILE, FOLDER), 'utf8');
const { inhibit_rules: inhibitions, receivers } = parse(configuration) as {
  receivers: {
    pagerduty_configs?: { description: string; details: Record<string, string> }[];
    email_configs?: { headers: Record<string, string>; text: string }[];
  }[];
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

  test('writes messages that name the mirror once, and what to read', () => {
    const data = {
      status: 'firing',
      alerts: [
        { labels: { job: 'prod' }, annotations: { summary: 'prod: S', description: 'D', runbook_url: 'R' } },
      ],
      groupLabels: { job: 'prod' },
    };
    const folder = mkdtempSync(join(tmpdir(), 'catalog-mirror-alertmanager-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'data.json'), JSON.stringify(data));
    writeFileSync(join(folder, 'empty.tmpl'), '');
    const rendered = (text: string) =>
      amtool(
        'template',
        'render',
        `--template.glob=${join(folder, '*.tmpl')}`,
        `--template.data=${join(folder, 'data.json')}`,
        `--template.text=${text}`,
      ).stdout.trim();
    const [onCall, tickets] = receivers;
    const page = onCall?.pagerduty_configs?.[0];
    expect(rendered(page?.description ?? '')).toBe('prod: S');
    expect(Object.entries(page?.details ?? {}).map(([name, text]) => [name, rendered(text)])).toEqual([
      ['mirror', 'prod'],
      ['says', 'D'],
      ['runbooks', 'R'],
    ]);
    const mail = tickets?.email_configs?.[0];
    expect(rendered(mail?.headers['subject'] ?? '')).toBe('firing: prod: S');
    expect(rendered(mail?.text ?? '')).toBe('prod: S\nD\nR');
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
