import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { terminalPicture } from '../../ops/pictures/terminal.ts';
import { temporaryFolder } from '../support/process.ts';

const hasScript = spawnSync('script', ['--version']).status === 0;

test.skipIf(!hasScript)('a picture is taken of the demo on a terminal', async () => {
  const [file = ''] = await terminalPicture(await temporaryFolder());
  const svg = await readFile(file, 'utf8');
  expect(svg.length).toBeLessThan(20_000);
  const text = svg.replaceAll(/<[^>]*>/g, '\n');
  for (const part of [
    /page +http:\/\/127\.0\.0\.1:\d+\//,
    /postgres:…@/,
    /5,0\d\d SKUs, about/,
    /DD1391-100/,
    /Ctrl-C/,
  ])
    expect(text.replaceAll(/\n+/g, ' ')).toMatch(part);
});
