import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';

const FOLDER = new URL('../../ops/alertmanager/', import.meta.url);
const FILE = 'alertmanager.yml';
const configuration = readFileSync(new URL(FILE, FOLDER), 'utf8');
const {
  route,
  inhibit_rules: inhibitions,
  receivers,
} = parse(configuration) as {
  route: { group_by: string[]; routes: { matchers: string[]; group_by?: string[] }[] };
  receivers: {
    pagerduty_configs?: { description: string; details: Record<string, string> }[];
    email_configs?: { headers: Record<string, string>; text: string }[];
  }[];
  inhibit_rules: { source_matchers: string[]; target_matchers: string[]; equal: string[] }[];
};
const rules = readFileSync(new URL('../prometheus/alerts.yml', FOLDER), 'utf8');

test('the alert for a missing daemon inhibits only other alerts of the same mirror', () => {
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

test('an acknowledged page does not keep other alerts of its mirror from paging', () => {
  const grouped = Object.fromEntries(
    route.routes.map(({ matchers, group_by: groups = route.group_by }) => [matchers.join(), groups]),
  );
  expect(grouped).toEqual({ 'severity="page"': ['job', 'alertname'], 'severity="ticket"': ['job'] });
});

test('the file contains no credential, only the path to it', () => {
  expect(configuration).not.toMatch(/^\s*(?:- )?(?:\w*password|\w*key|\w*token|\w*secret|api_url): /m);
  expect(configuration).toMatch(/_file: \/etc\/alertmanager\/secrets\//);
});

describe.skipIf(spawnSync('amtool', ['--version']).error !== undefined)('amtool', () => {
  const amtool = (...args: string[]) => {
    const { status, stdout } = spawnSync('amtool', args, { cwd: FOLDER, encoding: 'utf8' });
    return { status, stdout };
  };

  test('accepts the configuration', () => {
    expect(amtool('check-config', FILE)).toMatchObject({ status: 0 });
  });

  const alert = (status: string, name: string) => ({
    status,
    labels: { job: 'prod' },
    annotations: { summary: `prod: ${name}`, description: `D of ${name}`, runbook_url: `R of ${name}` },
  });

  /** Renders the templates of the configuration for a group of alerts. */
  function messagesOf(status: string, alerts: ReturnType<typeof alert>[]) {
    const folder = mkdtempSync(join(tmpdir(), 'catalog-mirror-alertmanager-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(
      join(folder, 'data.json'),
      JSON.stringify({ status, alerts, groupLabels: { job: 'prod' } }),
    );
    writeFileSync(join(folder, 'empty.tmpl'), '');
    const rendered = (text = '') =>
      amtool(
        'template',
        'render',
        `--template.glob=${join(folder, '*.tmpl')}`,
        `--template.data=${join(folder, 'data.json')}`,
        `--template.text=${text}`,
      ).stdout.trim();
    const [onCall, tickets] = receivers;
    const page = onCall?.pagerduty_configs?.[0];
    const mail = tickets?.email_configs?.[0];
    const details = Object.entries(page?.details ?? {}).map(([name, text]) => [name, rendered(text)]);
    return {
      page: [rendered(page?.description), ...details],
      mail: [rendered(mail?.headers['subject']), rendered(mail?.text)],
    };
  }

  test('writes messages that name the mirror once and link its runbook', () => {
    expect(messagesOf('firing', [alert('firing', 'S')])).toEqual({
      page: ['prod: S', ['mirror', 'prod'], ['says', 'D of S'], ['runbooks', 'R of S']],
      mail: ['firing: prod: S', 'prod: S\nD of S\nR of S'],
    });
  });

  test('writes about what fires, and about what is resolved once nothing fires', () => {
    const resolved = alert('resolved', 'A');
    expect(messagesOf('firing', [resolved, alert('firing', 'B')])).toEqual({
      page: ['prod: B', ['mirror', 'prod'], ['says', 'D of B'], ['runbooks', 'R of B']],
      mail: ['firing: prod: B', 'prod: B\nD of B\nR of B\n\nResolved: prod: A'],
    });
    expect(messagesOf('resolved', [resolved])).toEqual({
      page: ['prod: A', ['mirror', 'prod'], ['says', 'D of A'], ['runbooks', 'R of A']],
      mail: ['resolved: prod: A', 'Resolved: prod: A'],
    });
  });

  const severities = [
    ...new Set([...rules.matchAll(/severity: (\w+) /g)].map(([, severity = '']) => severity)),
  ];
  test('knows exactly two severities', () => expect(severities.toSorted()).toEqual(['page', 'ticket']));

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
