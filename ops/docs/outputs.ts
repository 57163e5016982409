import { readFileSync } from 'node:fs';
import { everyMetric } from '../../test/telemetry/stats.ts';
import { buildDashboard } from '../grafana/dashboard.ts';
import { codeBlocks, DOCUMENTS } from './blocks.ts';
import { environmentExample } from './environment.ts';
import { rewritten } from './marked.ts';
import { prometheusRule } from './prometheus-rule.ts';
import { namingRepository } from './repository.ts';

/** A file of the repository, from its root. */
export const fileOf = (path: string): URL => new URL(`../../${path}`, import.meta.url);
const read = (path: string) => readFileSync(fileOf(path), 'utf8');

/**
 * Every file that `npm run docs` writes, with the text that it is to have: pages whose marked blocks come from the code,
 * files that name the repository, the dashboard, the rules as Kubernetes takes them, an example environment, and the scrape
 * in which every metric has a series. What a page or file has beside that is the present text.
 */
export async function outputs(): Promise<ReadonlyMap<string, string>> {
  const blocks = codeBlocks();
  const pages = DOCUMENTS.map((page): [string, string] => [page, rewritten(read(page), blocks)]);
  const naming = namingRepository(read);
  const alerts = naming.get('ops/prometheus/alerts.yml') ?? '';
  return new Map([
    ...pages,
    ...naming,
    ['ops/kubernetes/prometheus-rule.yaml', prometheusRule(read('ops/prometheus/recording.yml'), alerts)],
    ['ops/grafana/dashboards/catalog-mirror.json', `${JSON.stringify(buildDashboard(), null, 2)}\n`],
    ['.env.example', environmentExample()],
    ['test/telemetry/every-metric.txt', await everyMetric()],
  ]);
}
