import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DASHBOARD, type Panel } from '../../test/ops/expressions.ts';
import { eventually } from '../../test/support/eventually.ts';
import { freePort } from '../../test/support/net.ts';
import { type Course, type Prometheus, startPrometheus } from '../../test/support/prometheus.ts';
import { type DrawnPanel, drawPanels, type Line } from './panel-svg.ts';

const ROOT = join(import.meta.dirname, '../..');
const SKUS = 8000;
/** Long enough for the initial load, its end, and some of the market's changes. */
const WATCHED_MS = 150_000;

/** What tells most of a mirror, as the dashboard calls it, with the columns that it gets here. */
const SHOWN: readonly (readonly [title: string, width: number])[] = [
  ['State', 5],
  ['Within target', 7],
  ['Delta last checked', 4],
  ['Snapshot built', 4],
  ['Catalog', 4],
  ['SKUs within target', 12],
  ['SKUs due', 12],
  ['Requests in the window against the limit', 12],
  ['Age of the prices', 12],
  ['SKUs in bulk answers', 12],
  ['Live computations', 12],
];

/** A demo in a process and a folder of its own, as `npm run demo` starts it. */
async function startDemo(): Promise<AsyncDisposable & { readonly target: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'catalog-mirror-pictures-'));
  // Run by root, the embedded Postgres is another user and has to get through this folder.
  await chmod(folder, 0o711);
  const port = await freePort();
  const demo = spawn(process.execPath, [...process.execArgv, 'src/main.ts', 'demo', '--skus', String(SKUS)], {
    cwd: ROOT,
    env: { ...process.env, HTTP_PORT: String(port), DATA_DIR: folder },
    stdio: 'ignore',
  });
  const ended = once(demo, 'exit');
  const target = `127.0.0.1:${port}`;
  const stop = async () => {
    demo.kill('SIGTERM');
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  const answers = async () => {
    if (demo.exitCode !== null) throw new Error(`the demo ended with ${demo.exitCode}`);
    return await fetch(`http://${target}/livez`).then(
      ({ ok }) => ok,
      () => false,
    );
  };
  try {
    await eventually(answers, { what: 'the demo answers', within: 60_000 });
  } catch (error) {
    await stop();
    throw error;
  }
  return { target, [Symbol.asyncDispose]: stop };
}

const filledIn = (expr: string) =>
  expr
    .replaceAll('$__rate_interval', '15s')
    .replaceAll('$instance', '.+')
    .replaceAll('$job', 'catalog-mirror');

function named(legend: string, { metric }: Course): string {
  return legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? '');
}

/** What a panel's expressions gave since the start; lines that were 0 throughout say nothing in a small picture. */
async function linesOf({ targets = [] }: Panel, stat: boolean, prometheus: Prometheus): Promise<Line[]> {
  const lines: Line[] = [];
  for (const { expr, legendFormat } of targets) {
    const query = filledIn(expr);
    for (const course of stat ? await prometheus.now(query) : await prometheus.course(query))
      lines.push({ legend: named(legendFormat, course), values: course.values });
  }
  return stat ? lines : lines.filter(({ values }) => values.some(([, value]) => value > 0));
}

async function drawn(title: string, width: number, prometheus: Prometheus): Promise<DrawnPanel> {
  const panel = DASHBOARD.panels.find((each) => each.title === title);
  if (panel === undefined) throw new Error(`the dashboard has no panel "${title}"`);
  const { defaults } = panel.fieldConfig ?? {};
  const stat = panel.type === 'stat';
  return {
    title,
    unit: defaults?.unit ?? 'short',
    stat,
    stacked: defaults?.custom?.stacking?.mode === 'normal',
    width,
    limits: (defaults?.thresholds?.steps ?? []).flatMap(({ value }) => value ?? []),
    lines: await linesOf(panel, stat, prometheus),
  };
}

/**
 * Draws the dashboard's most telling panels from what a Prometheus (on PATH; `.ci/tools` fetches it) got from a demo in its
 * first minutes: `dashboard.svg` in `folder`. Returns the files written. It takes three minutes.
 */
export async function panelPictures(folder: string): Promise<string[]> {
  await using demo = await startDemo();
  await using prometheus = await startPrometheus(demo.target);
  await sleep(WATCHED_MS);
  const panels: DrawnPanel[] = [];
  for (const [title, width] of SHOWN) panels.push(await drawn(title, width, prometheus));
  const minutes = Math.round(WATCHED_MS / 6000) / 10;
  const caption = `Panels of the dashboard, drawn from what Prometheus got in the first ${minutes} minutes of a demo of ${SKUS} SKUs; not a screenshot of Grafana.`;
  const file = join(folder, 'dashboard.svg');
  await mkdir(folder, { recursive: true });
  await writeFile(file, drawPanels(panels, caption));
  return [file];
}
