import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, test, type TestContext } from 'vitest';
import { runProgram, temporaryFolder } from '../support/process.ts';
import { createStack } from '../support/stack.ts';

const BIN = fileURLToPath(new URL('../../src/bin.ts', import.meta.url));
const REQUIRED =
  'PARTNER_BASE_URL=https://partner.example\nPARTNER_API_KEY=key-canary\nPARTNER_SECRET=pass#canary\n';

type Shown = { name: string; value: string | null; source: string; file: string | null };
const settingsIn = (stdout: string) => {
  const { settings } = JSON.parse(stdout) as { settings: Shown[] };
  return Object.fromEntries(settings.map(({ name, ...rest }) => [name, rest]));
};

/** Writes a file that its own test deletes, because the tests here run concurrently. */
async function fileWith({ onTestFinished }: TestContext, text: string): Promise<string> {
  const path = join(await temporaryFolder(onTestFinished), 'mirror.env');
  await writeFile(path, text);
  return path;
}

describe.concurrent('catalog-mirror config', () => {
  test('shows the settings in force, however the program is started, and no secret', async (context) => {
    const { expect } = context;
    const path = await fileWith(
      context,
      `${REQUIRED}DATABASE_URL=postgres://mirror:url-canary@db/mirror\nDELTA_INTERVAL=7m\nBULK_MAX_SKUS=50\nPARTNER_RATE_LIMTI=3\nMIRROR_NAME=back\\slash\n`,
    );
    const env = { DELTA_INTERVAL: '9m' };
    const ran = [
      await runProgram(['config', '--json', '--env-file', path], env),
      await runProgram([`--env-file=${path}`, 'config', '--json'], env),
      // As npm installs it: Node.js sees the option first and would cut the secret at its `#`.
      await runProgram([BIN, 'config', '--json', '--env-file', path], env, { bin: process.execPath }),
    ];
    for (const { code, stdout, stderr } of ran) {
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).not.toContain('canary');
      expect(settingsIn(stdout)).toMatchObject({
        DELTA_INTERVAL: { value: '9m', source: 'environment', file: null },
        BULK_MAX_SKUS: { value: '50', source: 'env-file', file: path },
        PARTNER_SECRET: { value: '********', source: 'env-file', file: path },
        DATABASE_URL: { value: 'postgres://mirror:********@db/mirror', source: 'env-file' },
        PARTNER_TIMEOUT: { value: '30s', source: 'default' },
      });
      expect((JSON.parse(stdout) as { warnings: string[] }).warnings).toEqual([
        expect.stringContaining('PARTNER_RATE_LIMTI is not a variable'),
        expect.stringContaining(`MIRROR_NAME of ${path} has a backslash`),
      ]);
    }
    const { stdout } = await runProgram(['config', '--env-file', path], env);
    expect(stdout).toMatch(/^DELTA_INTERVAL +9m +environment$/m);
    expect(stdout).toMatch(/^BULK_MAX_SKUS +50 +env-file .*mirror\.env$/m);
    expect(stdout).toMatch(/^PARTNER_SECRET +\*{8} +env-file/m);
    expect(stdout).toContain('did you mean PARTNER_RATE_LIMIT?');
  });

  test('reports every invalid setting just as a start does, and shows the others', async ({ expect }) => {
    const env = { PARTNER_BASE_URL: 'https://key:canary@x', DELTA_INTERVAL: 'often', REDIS_URL: 'canary' };
    const shown = await runProgram(['config'], env);
    const started = await runProgram(['run'], env);
    expect(shown).toMatchObject({ code: 78, stderr: started.stderr });
    expect(shown.stdout).toMatch(/^DELTA_INTERVAL +often \(invalid\) +environment$/m);
    expect(shown.stdout).toMatch(/^PARTNER_SECRET +not set \(invalid\) +default$/m);
    expect(shown.stdout).toMatch(/^PARTNER_BASE_URL +not shown \(invalid\) +environment$/m);
    expect(shown.stdout + shown.stderr).not.toContain('canary');
    const json = await runProgram(['config', '--json'], env);
    expect(json.code).toBe(78);
    expect(
      (JSON.parse(json.stdout) as { problems: { variable: string }[] }).problems.map(
        ({ variable }) => variable,
      ),
    ).toEqual(['PARTNER_BASE_URL', 'PARTNER_API_KEY', 'PARTNER_SECRET', 'REDIS_URL', 'DELTA_INTERVAL']);
  });
});

test('config reports a misspelt name once, even if its setting is missing because of it', async ({
  expect,
}) => {
  const env = {
    PARTNER_BASEURL: 'https://partner.example',
    PARTNER_API_KEY: 'key-canary',
    PARTNER_SECRET: 'secret-canary',
  };
  const meant = 'did you mean PARTNER_BASE_URL?';
  const json = await runProgram(['config', '--json'], env);
  expect(JSON.parse(json.stdout)).toMatchObject({
    warnings: [expect.stringContaining(meant)],
    problems: [{ variable: 'PARTNER_BASE_URL', unset: true }],
  });
  const shown = await runProgram(['config'], env);
  expect(shown.stdout.split(meant)).toHaveLength(2);
  for (const { code, stderr } of [json, shown]) {
    expect(code).toBe(78);
    expect(stderr).toContain('PARTNER_BASE_URL: not set');
    expect(stderr).not.toContain(meant);
  }
  expect((await runProgram(['run'], env)).stderr).toContain(meant);
});

describe.concurrent('--env-file', () => {
  test('is read by every command, before or after its name', async (context) => {
    const { expect } = context;
    await using stack = await createStack({ sandbox: { skus: 20, seed: 91, liveShare: 0, ghostShare: 0 } });
    const text = Object.entries(stack.env).map(([name, value]) => `${name}=${value}`);
    const path = await fileWith(context, text.join('\n'));
    expect(await runProgram(['run', '--once', '--timeout', '1m', '--env-file', path])).toMatchObject({
      code: 0,
    });
    expect(await runProgram(['--env-file', path, 'status'])).toMatchObject({
      stdout: expect.stringMatching(/^(?:healthy|degraded): /) as string,
    });
  });

  test('names a file that is unreadable or has broken lines, and shows nothing of its contents', async (context) => {
    const { expect } = context;
    const broken = await fileWith(context, 'PARTNER_SECRET="canary\ncanary\n');
    const folder = join(broken, '../folder');
    await mkdir(folder);
    await chmod(folder, 0o755);
    const args = ['status', '--env-file', '/nowhere/mirror.env', '--env-file', folder, '--env-file', broken];
    expect(await runProgram(args)).toMatchObject({
      code: 78,
      stdout: '',
      stderr: [
        '--env-file /nowhere/mirror.env: there is no such file',
        `--env-file ${folder}: it is a folder`,
        `--env-file ${broken}: line 1: the quote around the value of PARTNER_SECRET has no end in the line`,
        `--env-file ${broken}: line 2: expected NAME=value`,
      ].join('\n'),
    });
    expect(await runProgram(['status', '--env-file'])).toMatchObject({
      code: 78,
      stderr: '--env-file: expects a file',
    });
  });
});
