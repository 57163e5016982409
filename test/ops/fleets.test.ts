import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { ALERT_RULES, RULE_EXPRESSIONS, selectorsOf } from './expressions.ts';

/*
 * Several mirrors in one Prometheus. Every firing case of ops/prometheus/tests becomes a fleet: one mirror meets
 * the condition, and the others, drawn at random, are well. Exactly the first one's alerts must fire, with its
 * job.
 */

const RULES = join(import.meta.dirname, '../../ops/prometheus');
const CASES = join(RULES, 'tests');

interface Series {
  readonly series: string;
  readonly values: string;
}

interface Alert {
  readonly exp_labels: Readonly<Record<string, string>>;
  readonly exp_annotations: Readonly<Record<string, string>>;
}

interface Case {
  readonly name: string;
  readonly interval: string;
  readonly input_series: readonly Series[];
  readonly alert_rule_test: readonly {
    readonly eval_time: string;
    readonly alertname: string;
    readonly exp_alerts: readonly Alert[];
  }[];
}

/** The job of the mirror in the cases. */
const JOB = 'catalog-mirror';
const files = readdirSync(CASES).filter((file) => file !== 'fleet.yml');
const firing = files
  .flatMap((file) => (parse(readFileSync(join(CASES, file), 'utf8')) as { tests: Case[] }).tests)
  .filter(({ alert_rule_test: evaluations }) => evaluations.some((one) => one.exp_alerts.length > 0));

/** Returns the series of a healthy daemon for `minutes`: a value for everything that any rule reads. */
function healthy(job: string, instance: string, minutes: number): Series[] {
  const now = `0+60x${minutes}`;
  const always = (value: number) => `${value}x${minutes}`;
  const samples: readonly (readonly [metric: string, labels: string, values: string])[] = [
    ['up', '', always(1)],
    ['process_start_time_seconds', '', always(1)],
    ['catalog_mirror_build_info', '', always(1)],
    ['catalog_mirror_mirror_stats_available', '', always(1)],
    ['catalog_mirror_catalog_counted_timestamp_seconds', '', now],
    ['catalog_mirror_store_paused', 'because="disk-full"', always(0)],
    ['catalog_mirror_state', 'state="healthy"', always(1)],
    ['catalog_mirror_state', 'state="broken"', always(0)],
    ['catalog_mirror_actionable_skus', 'price_source="snapshot"', always(980)],
    ['catalog_mirror_actionable_skus', 'price_source="live"', always(90)],
    ['catalog_mirror_state_reason', 'code="postgres-unavailable"', always(0)],
    ['catalog_mirror_state_reason', 'code="filling"', always(0)],
    ['catalog_mirror_state_reason', 'code="delta-late"', always(0)],
    ['catalog_mirror_skus', 'state="priced", price_source="snapshot"', always(1000)],
    ['catalog_mirror_skus', 'state="priced", price_source="live"', always(100)],
    ['catalog_mirror_fresh_skus', 'price_source="snapshot"', always(990)],
    ['catalog_mirror_fresh_skus', 'price_source="live"', always(98)],
    ['catalog_mirror_price_age_target_seconds', 'price_source="snapshot"', always(86_400)],
    ['catalog_mirror_price_age_target_seconds', 'price_source="live"', always(1800)],
    ['catalog_mirror_due_skus', 'reason="changed"', always(3)],
    ['catalog_mirror_due_skus', 'reason="new"', always(0)],
    ['catalog_mirror_deferred_skus', '', always(0)],
    ['catalog_mirror_oldest_deferred_age_seconds', '', always(0)],
    ['catalog_mirror_backing_off', '', always(0)],
    ['catalog_mirror_paused', '', always(0)],
    ['catalog_mirror_credential_suspected', '', always(0)],
    ['catalog_mirror_refusals', '', always(0)],
    ['catalog_mirror_incident', 'because="live-count"', always(0)],
    ['catalog_mirror_task_failures', 'task="manifest"', always(0)],
    ['catalog_mirror_task_last_success_timestamp_seconds', 'task="reprice"', now],
    ['catalog_mirror_delta_checked_timestamp_seconds', '', now],
    ['catalog_mirror_manifest_applied_timestamp_seconds', '', now],
    ['catalog_mirror_snapshot_generated_timestamp_seconds', '', now],
    ['catalog_mirror_rebaselines_total', 'because="chain-broken"', always(1)],
    ['catalog_mirror_manifest_rejected_lines_total', 'reason="r"', always(2)],
    ['catalog_mirror_unreadable_records_total', 'source="bulk"', always(0)],
    ['catalog_mirror_calibration_looks', 'cohort="live"', always(50_000)],
    ['catalog_mirror_promise_cases_total', 'outcome="kept"', always(70_000)],
    ['catalog_mirror_promise_cases_total', 'outcome="broken"', always(5)],
    ['catalog_mirror_calibration_error_ratio', 'cohort="live"', always(0.01)],
  ];
  return samples.map(([metric, labels, values]) => ({
    series: `${metric}{${[`job="${job}"`, `instance="${instance}"`, labels].filter(Boolean).join(', ')}}`,
    values,
  }));
}

/** Series that a healthy mirror lacks, because nothing is rejected, no refresh waits and so on. */
const ABSENT_WHEN_WELL = [
  'catalog_mirror_refused_since_timestamp_seconds',
  'catalog_mirror_live_longest_wait_seconds',
  'catalog_mirror_paused_since_timestamp_seconds',
  'catalog_mirror_paused_until_timestamp_seconds',
  // Nobody follows.
  'catalog_mirror_follower_behind_seconds',
  'catalog_mirror_follower_position_lost',
  'catalog_mirror_follower_dead_letters',
  // Prometheus creates it for firing alerts.
  'ALERTS',
];

const minutesOf = (time: string) => Number.parseFloat(time) * (time.endsWith('h') ? 60 : 1);

interface Fleet {
  readonly sick: string;
  readonly well: readonly { readonly job: string; readonly replicas: number }[];
  readonly sickFirst: boolean;
}

/** Puts a case into a fleet: its mirror becomes the job `sick`, and the others are well throughout. */
function inFleet({ name, interval, input_series, alert_rule_test }: Case, fleet: Fleet): Case {
  const renamed = (text: string) => text.replaceAll(new RegExp(`${JOB}(?![/\\w-])`, 'g'), fleet.sick);
  const minutes = Math.max(...alert_rule_test.map(({ eval_time }) => minutesOf(eval_time)));
  const sick = input_series.map(({ series, values }) => ({
    series: series.replace(`job="${JOB}"`, `job="${fleet.sick}"`),
    values,
  }));
  const well = fleet.well.flatMap(({ job, replicas }) =>
    // The same addresses in every job, as with agents that each call their own daemon "worker".
    Array.from({ length: replicas }, (_, at) => healthy(job, 'abc'[at] ?? 'd', minutes)).flat(),
  );
  return {
    name: `${name} (${fleet.sick} beside ${fleet.well.map(({ job }) => job).join(', ')})`,
    interval,
    input_series: fleet.sickFirst ? [...sick, ...well] : [...well, ...sick],
    alert_rule_test: alert_rule_test.map((evaluation) => ({
      ...evaluation,
      exp_alerts: evaluation.exp_alerts.map(({ exp_labels, exp_annotations }) => ({
        // A case may contain additional mirrors of its own.
        exp_labels: exp_labels['job'] === JOB ? { ...exp_labels, job: fleet.sick } : exp_labels,
        exp_annotations: { ...exp_annotations, summary: renamed(exp_annotations['summary'] ?? '') },
      })),
    })),
  };
}

const NAMES = ['catalog-mirror', 'catalog-mirror-prod', 'shop/catalog-mirror', 'prices', 'a', 'z'];
const fleets: fc.Arbitrary<Fleet> = fc
  .record({
    jobs: fc.shuffledSubarray(NAMES, { minLength: 2, maxLength: 3 }),
    replicas: fc.array(fc.integer({ min: 1, max: 2 }), { minLength: 2, maxLength: 2 }),
    sickFirst: fc.boolean(),
  })
  .map(({ jobs: [sick = '', ...well], replicas, sickFirst }) => ({
    sick,
    well: well.map((job, at) => ({ job, replicas: replicas[at] ?? 1 })),
    sickFirst,
  }));

function promtool(tests: readonly Case[]): { status: number | null; said: string } {
  const folder = mkdtempSync(join(tmpdir(), 'catalog-mirror-fleets-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'fleets.yml');
  const rule_files = ['recording.yml', 'alerts.yml'].map((name) => join(RULES, name));
  writeFileSync(file, stringify({ rule_files, evaluation_interval: '1m', tests }));
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  return { status, said: status === 0 ? '' : stdout + stderr };
}

/** The limit for promtool on a busy machine; by itself it takes some seconds. */
const LONG = 240_000;
const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000);

test('every alert has a firing case, and the healthy mirror has every metric that the rules read', () => {
  const covered = new Set(
    firing.flatMap((each) =>
      each.alert_rule_test.flatMap(({ alertname, exp_alerts }) => (exp_alerts.length > 0 ? [alertname] : [])),
    ),
  );
  expect([...covered].toSorted()).toEqual(
    [...new Set(ALERT_RULES.map(({ alert = '' }) => alert))].toSorted(),
  );
  const metrics = new Set(healthy('a', 'b', 1).map(({ series }) => series.replace(/\{.*/, '')));
  const read = RULE_EXPRESSIONS.flatMap(({ expr }) => selectorsOf(expr).map(({ metric }) => metric));
  expect(
    read.filter((name) => !name.includes(':') && !metrics.has(name) && !ABSENT_WHEN_WELL.includes(name)),
  ).toEqual([]);
});

test('every rule keeps the job in each aggregation and each match of series', () => {
  for (const { where, expr } of RULE_EXPRESSIONS) {
    const plain = expr.replaceAll(/#.*$/gm, '').replace('or on () absent(', 'or absent(');
    for (const [, operation, labels = ''] of plain.matchAll(
      /\b(max|min|sum|avg|count|group|on|without|ignoring)\s*(?:by\s*)?(\([^()]*\))/g,
    ))
      expect(labels, `${where}: ${operation}`).toMatch(/^\(job\b/);
  }
});

describe.skipIf(spawnSync('promtool', ['--version']).error !== undefined)('a fleet', () => {
  test(
    `fires exactly the alerts of its sick mirror (SEED=${seed})`,
    () => {
      const drawn = fc.sample(fleets, { seed, numRuns: firing.length });
      const tests = firing.map((each, at) => inFleet(each, drawn[at] as Fleet));
      expect(promtool(tests)).toEqual({ status: 0, said: '' });
    },
    LONG,
  );

  test(
    'fires nothing while all mirrors are well, with one or two replicas',
    () => {
      const minutes = 4 * 60;
      const input_series = ['one', 'two', 'catalog-mirror'].flatMap((job, at) =>
        ['a', 'b'].slice(at % 2).flatMap((instance) => healthy(job, instance, minutes)),
      );
      const names = [...new Set(ALERT_RULES.map(({ alert = '' }) => alert))];
      const alert_rule_test = ['30m', '2h', '4h'].flatMap((eval_time) =>
        names.map((alertname) => ({ eval_time, alertname, exp_alerts: [] })),
      );
      expect(promtool([{ name: 'well', interval: '1m', input_series, alert_rule_test }])).toEqual({
        status: 0,
        said: '',
      });
    },
    LONG,
  );
});
