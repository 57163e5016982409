import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { FILES } from '../../ops/docs/repository.ts';
import { METRICS, PREFIX } from '../../src/telemetry/metrics/metrics.ts';

const OPS = new URL('../../ops/', import.meta.url);
const RULES = new URL('prometheus/', OPS);
const CASES = new URL('prometheus/tests/', OPS);
const RUNBOOKS = new URL('runbooks/', OPS);
const text = (file: string, folder: URL) => readFileSync(new URL(file, folder), 'utf8');

const alertRules = text('alerts.yml', RULES);
const rules = alertRules + text('recording.yml', RULES);
const alerts = [...new Set([...alertRules.matchAll(/- alert: (\w+)$/gm)].map(([, name = '']) => name))];
const caseFiles = readdirSync(CASES).filter((file) => file.endsWith('.yml'));
const { groups: alerting } = parse(alertRules) as Rules;
const cases = caseFiles.map((file) => text(file, CASES)).join('\n');
const runbooks = readdirSync(RUNBOOKS);

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly { readonly annotations?: Readonly<Record<string, string>> }[];
  }[];
}

describe('the rules', () => {
  test('name only exported metrics', () => {
    const exported = new Set(Object.keys(METRICS).map((name) => PREFIX + name));
    // A metric has an underscore after the prefix, a recorded series a colon.
    const named = new Set(rules.replace(/^\s*#.*$/gm, '').match(/\bcatalog_mirror_(?!repository)\w+/g));
    expect(named.size).toBeGreaterThan(15);
    expect([...named].filter((name) => !exported.has(name))).toEqual([]);
  });

  test('name only recorded series that exist', () => {
    const recorded = new Set([...rules.matchAll(/- record: (\S+)$/gm)].map(([, name]) => name));
    const named = rules.match(/catalog_mirror:[\w:]+/g) ?? [];
    expect(named.filter((name) => !recorded.has(name))).toEqual([]);
  });

  test('have a severity, a summary, a description and a runbook in every alert', () => {
    const blocks = alertRules.split(/^ {6}- alert: /m).slice(1);
    for (const block of blocks) {
      expect(block).toMatch(/severity: (?:page|ticket) /);
      expect(block).toMatch(/summary: .+\n\s+description: .+\n\s+runbook_url: /);
    }
  });

  test('link runbooks in the repository of package.json, unless Prometheus sets another one', () => {
    for (const { annotations } of alerting.flatMap(({ rules }) => rules)) {
      const [, place, file = '?'] =
        /^\{\{ with \$externalLabels\.catalog_mirror_repository \}\}\{\{ \. \}\}\{\{ else \}\}(.*)\{\{ end \}\}\/(ops\/runbooks\/[\w-]+\.md)$/.exec(
          annotations?.['runbook_url'] ?? '',
        ) ?? [];
      expect(place).toBe(FILES);
      expect(existsSync(new URL(`../../${file}`, import.meta.url)), `file ${file}`).toBe(true);
    }
  });

  test.each(alerts)('%s has a firing and a silent case', (alert) => {
    const expectations = cases
      .split(/- eval_time: /)
      .slice(1)
      .filter((block) => new RegExp(`alertname: ${alert}\\n`).test(block));
    expect(
      expectations.some((block) => /exp_alerts: *\n\s+- /.test(block)),
      'firing',
    ).toBe(true);
    expect(
      expectations.some((block) => /exp_alerts: \[\]/.test(block)),
      'silent',
    ).toBe(true);
  });
});

test.each(runbooks)('%s belongs to an alert and has all its sections', (file) => {
  const book = text(file, RUNBOOKS);
  expect(book.match(/^## .+$/gm)).toEqual(['## Meaning', '## Impact', '## Diagnosis', '## Mitigation']);
  expect(alerts).toContain(/^# (\w+)$/m.exec(book)?.[1]);
  expect(alertRules).toContain(`ops/runbooks/${file}`);
});

describe.skipIf(spawnSync('promtool', ['--version']).error !== undefined)('promtool', () => {
  const promtool = (args: string[], cwd: URL) => {
    const { status, stdout, stderr } = spawnSync('promtool', args, { cwd, encoding: 'utf8' });
    return { status, said: status === 0 ? '' : stdout + stderr };
  };

  test('accepts the rules', () => {
    expect(promtool(['check', 'rules', 'recording.yml', 'alerts.yml'], RULES)).toEqual({
      status: 0,
      said: '',
    });
  });

  test('sees every alert fire when it should, and stay silent otherwise', () => {
    expect(promtool(['test', 'rules', ...caseFiles], CASES)).toEqual({ status: 0, said: '' });
  }, 240_000);

  test('accepts the configuration of the Prometheus in docker-compose.yml', () => {
    expect(promtool(['check', 'config', 'prometheus.yml'], RULES)).toEqual({ status: 0, said: '' });
  });
});
