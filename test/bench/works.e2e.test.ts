import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Row } from '../../bench/frame/table.ts';

/*
 * The benches that are measured once per release run with the current statements: each prints its table for a
 * small catalog. Whether it reaches its target (exit 1) does not matter here.
 */

const ROOT = join(import.meta.dirname, '../..');
/**
 * Those that then take only seconds; `apply` asks for many SKUs, `start` and `traces` build and start programs,
 * `scale` and `ceiling` simulate days.
 */
const WORKS = ['rebaseline', 'claim', 'follow', 'scrape', 'size', 'bloat', 'read', 'statements --seconds 2'];

async function run(work: string, args: readonly string[]) {
  const child = spawn(process.execPath, [join(ROOT, 'bench', work, 'main.ts'), ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stderr };
}

test.for(WORKS)('bench:%s runs to its table', async (work) => {
  const folder = await mkdtemp(join(tmpdir(), 'catalog-mirror-works-'));
  try {
    const json = join(folder, 'rows.json');
    const [name = '', ...own] = work.split(' ');
    const { code, stderr } = await run(name, [...own, '--skus', '1000', '--rounds', '1', '--json', json]);
    if (code !== 0 && code !== 1) throw new Error(`it ended with ${code}: ${stderr}`);
    const { rows } = JSON.parse(await readFile(json, 'utf8')) as { rows: Row[] };
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.filter(({ ours }) => !Number.isFinite(ours))).toEqual([]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test.for([
  ['size', ['--sku', '5'], /'--sku'.*\noptions and defaults: --skus 200000 --rounds 1 --json …/s],
  ['size', ['--skus', 'many'], '--skus: expected a number'],
  ['size', ['--skus', '0'], '--skus and --rounds are numbers of one or more'],
  ['freshness', ['--help'], '--seed 1 --seeds 5'],
  ['freshness', ['--part', 'other'], '--part: expected one of live prices,'],
  ['ceiling', ['--hours', 'six'], '--hours: expected a number'],
] as const)('bench:%s %s is rejected with the available options', async ([work, options, says]) => {
  const { code, stderr } = await run(work, options);
  expect(code).toBe(2);
  if (typeof says === 'string') expect(stderr).toContain(says);
  else expect(stderr).toMatch(says);
  expect(stderr).not.toContain('    at ');
});
