import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { runProgram, temporaryFolder } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';
import { codeBlocks, ROOT } from './markdown.ts';
import { callsIn, type Line, SCRIPTS, SINGLE } from './shell.ts';

vi.setConfig({ maxConcurrency: 3 });

const SNAPSHOTS = 8;
/** Market steps between two snapshots: about as many as in the demo. */
const STEPS = 7;

let stack: Stack;
let environment: Record<string, string>;

/** Starts a mirror of a default sandbox and waits for a few snapshots. */
beforeAll(async () => {
  stack = await createStack({
    sandbox: { skus: 400, orders: 100, listings: 20 },
    env: { DELTA_INTERVAL: '1s' },
  });
  const { sandbox } = stack;
  const app = await stack.start();
  await stack.caughtUp();
  for (let snapshot = 0; snapshot < SNAPSHOTS; snapshot += 1) {
    for (let step = 0; step < STEPS; step += 1) sandbox.step();
    const newest = sandbox.world.buildSnapshot();
    await eventually(async () => (await snapshotOfMirror()) === newest, { what: 'the newest snapshot' });
    await stack.caughtUp();
  }
  const bin = await temporaryFolder(() => {});
  const program = fileURLToPath(new URL('src/main.ts', ROOT));
  await put(join(bin, 'catalog-mirror'), `exec ${process.execPath} ${program} "$@"`);
  // The documents name the default ports; the daemon and the sandbox of the test have others.
  const { host } = new URL(stack.sandbox.url);
  const moved = `s/127\\.0\\.0\\.1:9464/127.0.0.1:${app.httpPort}/; s/127\\.0\\.0\\.1:8080/${host}/`;
  await put(
    join(bin, 'curl'),
    `args=(); for word; do args+=("$(sed '${moved}' <<<"$word")"); done; PATH=\${PATH#*:} exec curl --fail-with-body "\${args[@]}"`,
  );
  environment = {
    ...stack.env,
    HTTP_PORT: String(app.httpPort),
    PATH: `${bin}:${process.env['PATH']}`,
    NODE_COMPILE_CACHE: fileURLToPath(new URL('node_modules/.cache/compiled', ROOT)),
  };
}, 120_000);

afterAll(async () => await stack[Symbol.asyncDispose]());

async function snapshotOfMirror(): Promise<string | null> {
  const [row] = await stack.sql<[{ id: string | null }]>`select snapshot_id as id from catalog.sync_status`;
  return row.id;
}

async function put(file: string, script: string): Promise<void> {
  await writeFile(file, `#!/usr/bin/env bash\n${script}\n`);
  await chmod(file, 0o755);
}

describe('TypeScript of the documents', () => {
  type Run = (...values: unknown[]) => Promise<void>;
  const AsyncFunction = (async () => {}).constructor as new (...namesAndCode: string[]) => Run;

  /** Runs the block that contains `about`, with its free variables from `given`. */
  async function runBlock(about: string, given: Readonly<Record<string, unknown>>): Promise<void> {
    const [block] = codeBlocks('ts').filter(({ text }) => text.includes(about));
    await new AsyncFunction(...Object.keys(given), block?.text ?? 'throw 0')(...Object.values(given));
  }

  test('the loop around take_request ends, and its request is counted', async () => {
    const { sql } = stack;
    const taken = async () => {
      const [row] = await sql<[{ n: number }]>`select count(*)::int as n from catalog_internal.pace_sends`;
      return row.n;
    };
    const before = await taken();
    await runBlock('take_request', { sql });
    expect(await taken()).toBe(before + 1);
  });

  test('the core of a follower takes each change once', async () => {
    const { sql } = stack;
    await sql`create schema shop`;
    await sql`create table shop.position as select catalog.changes_oldest() as position`;
    const seen: string[] = [];
    const apply = ({ position }: { position: string }) => seen.push(position);
    for (let before = -1; before < seen.length;) {
      before = seen.length;
      await runBlock('shop.position', { sql, apply });
    }
    const [all] = await sql<[{ n: number }]>`
      select (select count(*) from catalog.price_history)::int + (select count(*) from catalog.product_history)::int
        + (select sum(last_id - id + 1) from catalog_internal.change_batches)::int as n`;
    expect(seen.length).toBeGreaterThan(2);
    expect([seen.length, new Set(seen).size]).toEqual([all.n, all.n]);
  });
});

/** Runs a command as a person would, in the root of the repository or in `cwd`. */
async function inShell(command: string, cwd = fileURLToPath(ROOT)) {
  const shell = spawn('bash', ['-ec', command], {
    cwd,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr, [code]] = (await Promise.all([
    text(shell.stdout),
    text(shell.stderr),
    once(shell, 'close'),
  ])) as [string, string, [number | null]];
  return { code, stdout, stderr };
}

/** Tools that a machine may lack; commands that need one are then skipped. */
const MISSING = ['curl', 'openssl'].filter((tool) => spawnSync(tool, ['version']).error !== undefined);
const lacks = (script = '') => MISSING.some((tool) => script.includes(tool));

/** Keeps one of several calls that are the same to the program, however they are written. */
function eachOnce(lines: readonly Line[]): Line[] {
  const key = ({ text }: Line) =>
    /[|>$]/.test(text) || callsIn(text).length !== 1 ? text : (callsIn(text)[0] ?? []).join(' ');
  return [...new Map(lines.toReversed().map((line) => [key(line), line])).values()].toReversed();
}

describe.concurrent('commands of the documents', () => {
  test.for(eachOnce(SINGLE))('$where: $text', async ({ text }, { expect, skip }) => {
    skip(lacks(text));
    const { code, stderr } = await inShell(text);
    // The test's mirror is a minute old, so its health does not matter.
    expect({ code: /\b(?:status|verify)\b/.test(text) && code === 1 ? 0 : code, stderr }).toMatchObject({
      code: 0,
    });
  });
});

test('the plan shown on a page is what the program prints', async () => {
  const [shown] = codeBlocks('text').filter(({ text }) => text.startsWith('500,000 SKUs'));
  const { code, stdout } = await runProgram(['plan', '--skus', '500000']);
  expect({ code, plan: `${stdout}\n` }).toEqual({ code: 0, plan: shown?.text });
});

describe.concurrent('scripts of the documents', () => {
  const [secrets, ...others] = SCRIPTS.toSorted(({ page }) => (page.startsWith('ops/secrets') ? -1 : 1));

  test('the commands of the page create the secrets, in files with the given values', async ({
    expect,
    onTestFinished,
    skip,
  }) => {
    skip(lacks(secrets?.text));
    const folder = await temporaryFolder(onTestFinished);
    for (const name of ['secrets', 'postgres', 'prometheus', 'grafana'])
      await mkdir(join(folder, 'ops', name), { recursive: true });
    const { code, stderr, stdout } = await inShell(`${secrets?.text}\nhead -c 99 *`, folder);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/postgres:\/\/catalog_mirror:[0-9a-f]{48}@postgres:5432\/catalog/);
    expect(stdout).toContain('your api_key');
  });

  test.for(others)('$page:$line', async ({ text }, { expect, skip }) => {
    skip(lacks(text));
    const { code, stdout, stderr } = await inShell(text);
    expect({ code, stderr, said: stdout.length > 100 }).toEqual({ code: 0, stderr: '', said: true });
  });
});
