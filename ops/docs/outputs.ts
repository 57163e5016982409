import { readFileSync } from 'node:fs';
import { everyMetric } from '../../test/telemetry/stats.ts';
import { buildDashboard } from '../grafana/dashboard.ts';
import { codeBlocks, DOCUMENTS } from './blocks.ts';
import { rewritten } from './marked.ts';

/** A file of the repository, from its root. */
export const fileOf = (path: string): URL => new URL(`../../${path}`, import.meta.url);

/**
 * Every file that `npm run docs` writes, with the text that it is to have: pages whose marked blocks come from the code,
 * the dashboard, and the scrape in which every metric has a series. The text of a page beside its blocks is the present one.
 */
export async function outputs(): Promise<ReadonlyMap<string, string>> {
  const blocks = codeBlocks();
  const pages = DOCUMENTS.map((page): [string, string] => [
    page,
    rewritten(readFileSync(fileOf(page), 'utf8'), blocks),
  ]);
  return new Map([
    ...pages,
    ['ops/grafana/dashboards/catalog-mirror.json', `${JSON.stringify(buildDashboard(), null, 2)}\n`],
    ['test/telemetry/every-metric.txt', await everyMetric()],
  ]);
}
