import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { eventually } from './eventually.ts';
import { freePort } from './net.ts';

/** Whether this machine has the program of Prometheus. */
export const hasPrometheus = spawnSync('prometheus', ['--version']).status === 0;

const RULES = fileURLToPath(new URL('../../ops/prometheus/', import.meta.url));
const RULE_FILES = ['recording.yml', 'alerts.yml'];

/** One series of an answer: its labels, and its samples as seconds and value. */
export interface Course {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [number, number])[];
}

/**
 * A Prometheus with the rule files of ops/prometheus, which scrapes every two seconds and evaluates every second.
 */
export interface Prometheus extends AsyncDisposable {
  /** Returns the current result of an expression. Throws Prometheus's message if it cannot parse it. */
  now(expr: string): Promise<Course[]>;
  /** Returns its result in every second since the start. */
  course(expr: string): Promise<Course[]>;
  /** Returns the label sets of all series since the start that match a selector. */
  series(selector: string): Promise<readonly Readonly<Record<string, string>>[]>;
}

interface Answer {
  readonly status: string;
  readonly error?: string;
  readonly data?: unknown;
}

interface Sampled {
  readonly metric: Readonly<Record<string, string>>;
  readonly value?: readonly [number, string];
  readonly values?: readonly (readonly [number, string])[];
}

function coursesOf(data: unknown): Course[] {
  return (data as { result: readonly Sampled[] }).result.map(({ metric, value, values }) => ({
    metric,
    values: (values ?? (value === undefined ? [] : [value])).map(([at, text]) => [at, Number(text)] as const),
  }));
}

/** Starts a Prometheus that scrapes `target` (host:port), and waits for its first scrape. */
export async function startPrometheus(target: string): Promise<Prometheus> {
  const folder = await mkdtemp(join(tmpdir(), 'catalog-mirror-prometheus-'));
  const port = await freePort();
  for (const file of RULE_FILES) {
    const rules = parse(await readFile(join(RULES, file), 'utf8')) as {
      groups: { name: string; rules: unknown }[];
    };
    const groups = rules.groups.map(({ name, rules }) => ({ name, rules, interval: '1s' }));
    await writeFile(join(folder, file), JSON.stringify({ groups }));
  }
  // JSON is YAML. A late scrape is lost, and none may take longer than the interval.
  const config = {
    global: { scrape_interval: '2s', scrape_timeout: '2s', evaluation_interval: '1s' },
    rule_files: RULE_FILES,
    scrape_configs: [{ job_name: 'catalog-mirror', static_configs: [{ targets: [target] }] }],
  };
  await writeFile(join(folder, 'test.yml'), JSON.stringify(config));
  const startedAt = Date.now() / 1000;
  const child = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'test.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=error',
    ],
    { stdio: 'ignore' },
  );
  const exited = once(child, 'close');
  const reap = () => void child.kill('SIGKILL');
  process.once('exit', reap);

  async function ask(path: string, parameters: Readonly<Record<string, string | number>>): Promise<unknown> {
    const body = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) body.set(name, String(value));
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`, { method: 'POST', body });
    const { status, error, data } = (await response.json()) as Answer;
    if (status !== 'success') throw new Error(`${error}: ${JSON.stringify(parameters)}`);
    return data;
  }

  const prometheus: Prometheus = {
    now: async (query) => coursesOf(await ask('query', { query })),
    course: async (query) =>
      coursesOf(await ask('query_range', { query, start: startedAt, end: Date.now() / 1000, step: 1 })),
    async series(selector) {
      const found = await ask('series', {
        'match[]': selector,
        start: startedAt,
        end: Date.now() / 1000 + 1,
      });
      return found as readonly Readonly<Record<string, string>>[];
    },
    async [Symbol.asyncDispose]() {
      reap();
      await exited;
      process.off('exit', reap);
      await rm(folder, { recursive: true, force: true });
    },
  };
  const scraped = async () => {
    if (child.exitCode !== null) throw new Error(`prometheus ended with ${child.exitCode}`);
    const found = await prometheus.now('up == 1').catch(() => []);
    return found.length > 0;
  };
  await eventually(scraped, { what: 'the first scrape' });
  return prometheus;
}
