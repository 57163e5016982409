import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readFollowers } from '../../src/store/history/follower-list.ts';
import { bodyText, serve } from '../partner/server.ts';
import { useStore } from '../store/support.ts';
import { eventually, pause } from '../support/eventually.ts';
import { deafPort, holdingPort, through as throughPort } from '../support/net.ts';
import { type Env, expectStopped, runProgram, startProgram } from '../support/process.ts';
import { movePrices, positionNow, positionsAfter } from './changes.ts';
import { verified } from './verified.ts';

const store = useStore();
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

const env = (more: Env = {}): Env => ({
  DATABASE_URL: store.url,
  WEBHOOK_SECRET: SECRET,
  WEBHOOK_ALLOW_PRIVATE: 'true',
  LOG_FORMAT: 'json',
  LOG_LEVEL: 'debug',
  ...more,
});
const follow = (...args: string[]) => startProgram(['follow', ...args], env());
const ran = (...args: string[]) => runProgram(['follow', ...args], env());
const positionsOf = (lines: readonly string[]) =>
  lines.map((line) => (JSON.parse(line) as { position: number }).position);
const said = (program: { readonly stderr: readonly string[] }, event: string) =>
  program.stderr.filter((line) => line.includes(`"event":"${event}"`));
const known = () => eventually(async () => (await readFollowers(store.sql)).length > 0);

interface Post {
  readonly id: string;
  readonly positions: readonly number[];
}

/** Starts a receiver that answers as told and remembers what it took with 2xx. */
async function receiver(answer: (response: ServerResponse, post: number, request: IncomingMessage) => void) {
  const posts: Post[] = [];
  const taken: number[] = [];
  const url = await serve(async (request, response) => {
    const body = await bodyText(request);
    expect(verified(request.headers, body, SECRET)).toBe(true);
    const { data } = JSON.parse(body) as { data: { changes: { position: number }[] } };
    const positions = data.changes.map(({ position }) => position);
    posts.push({ id: String(request.headers['webhook-id']), positions });
    answer(response, posts.length, request);
    if (response.statusCode < 300) taken.push(...positions);
  });
  return { url: url.href, posts, taken };
}

/** Leaves out repetitions. */
const fresh = (positions: readonly number[]) => {
  let last = 0;
  return positions.filter((position) => position > last && ((last = position), true));
};

describe('lines on stdout', () => {
  test('continue from where they ended, and wait for new commits', async () => {
    const start = await positionNow(store.sql);
    await using first = follow('--name', 'shop');
    await known();
    await movePrices(store.sql, 3);
    await eventually(() => first.stdout.length === 3);
    expectStopped(await first.end('SIGTERM'));
    await movePrices(store.sql, 2);
    const rest = await ran('--name', 'shop', '--once');
    expect(rest.code).toBe(0);
    expect(positionsOf([...first.stdout, ...rest.stdout.split('\n')])).toEqual(
      await positionsAfter(store.sql, start),
    );
    expect((await ran('--name', 'shop', '--once')).stdout).toBe('');
    expect((await ran('--list', '--json')).stdout).toContain('"name":"shop"');
  });

  test('come again if a process was killed before it stored their position', async () => {
    const start = await positionNow(store.sql);
    await ran('--name', 'shop', '--once');
    const seen: number[] = [];
    for (let kill = 0; kill < 3; kill += 1) {
      await movePrices(store.sql, 1500);
      await using program = follow('--name', 'shop');
      await eventually(() => program.stdout.length > 0);
      await program.end('SIGKILL');
      seen.push(...positionsOf(program.stdout.filter((line) => line.endsWith('}'))));
    }
    const rest = await ran('--name', 'shop', '--once');
    // Reads the killed process's pipe to its end: nothing is missing.
    seen.push(...(rest.stdout === '' ? [] : positionsOf(rest.stdout.split('\n'))));
    expect(fresh(seen)).toEqual(await positionsAfter(store.sql, start));
  });

  test('wait for a slow reader, and end with code 0 when it closes the pipe', async () => {
    await ran('--name', 'shop', '--once');
    await movePrices(store.sql, 3000);
    const child = spawn(process.execPath, [MAIN, 'follow', '--name', 'shop'], {
      env: { PATH: process.env['PATH'], ...env() },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    await eventually(async () => (await readFollowers(store.sql))[0]?.heldBy !== null);
    // Nobody reads: what does not fit into the pipe is not delivered, and its position is not stored.
    await eventually(async () => ((await readFollowers(store.sql))[0]?.behind ?? 0) > 0);
    child.stdout.destroy();
    const [code] = (await once(child, 'close')) as [number | null];
    expect(code).toBe(0);
    expect((await readFollowers(store.sql))[0]?.behind).toBeGreaterThan(0);
  });

  test('wait for room if the file can grow no more, and none is lost or broken', async () => {
    const start = await positionNow(store.sql);
    const folder = await mkdtemp(join(tmpdir(), 'follow-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const path = join(folder, 'changes.jsonl');
    await ran('--name', 'shop', '--once');
    await movePrices(store.sql, 500);
    // Sixteen blocks a file: like a full disk, but by a limit that needs no disk of its own.
    const limited = `trap '' XFSZ; ulimit -f 16; exec "$0" "$@" >> '${path}'`;
    const child = spawn('bash', ['-c', limited, process.execPath, MAIN, 'follow', '--name', 'shop'], {
      env: { PATH: process.env['PATH'], ...env() },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    let stderr = '';
    child.stderr.on('data', (piece: Buffer) => (stderr += piece.toString('utf8')));
    await eventually(() => /"event":"follower\.(failing|delivered)"/.test(stderr));
    expect(stderr).toMatch(/"event":"follower\.failing".*"said":"EFBIG"/);
    child.kill('SIGTERM');
    const [code] = (await once(child, 'exit')) as [number | null];
    expect(code).toBe(0);
    await appendFile(path, `${(await ran('--name', 'shop', '--once')).stdout}\n`);
    const lines = (await readFile(path, 'utf8')).trimEnd().split('\n');
    expect(positionsOf(lines)).toEqual(await positionsAfter(store.sql, start));
  });

  test('end at once if nobody reads and the process is told to stop', async () => {
    await ran('--name', 'shop', '--once');
    await movePrices(store.sql, 3000);
    const child = spawn(process.execPath, [MAIN, 'follow', '--name', 'shop'], {
      env: { PATH: process.env['PATH'], ...env() },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    await eventually(async () => (await readFollowers(store.sql))[0]?.heldBy !== null);
    child.kill('SIGTERM');
    const [code] = (await once(child, 'exit')) as [number | null];
    expect(code).toBe(0);
  });
});

describe('a webhook', () => {
  test('gets everything in order once it is up, and blocks no other follower', async () => {
    const start = await positionNow(store.sql);
    let isUp = false;
    const shop = await receiver((response) => response.writeHead(isUp ? 200 : 503).end());
    await using down = follow('--name', 'shop', '--webhook', shop.url, '--batch', '3');
    await known();
    await using other = follow('--name', 'other');
    await eventually(async () => (await readFollowers(store.sql)).length === 2);
    await movePrices(store.sql, 10);
    await eventually(() => other.stdout.length === 10 && said(down, 'follower.failing').length > 1);
    const [, behind] = await readFollowers(store.sql);
    expect(behind).toMatchObject({ name: 'shop', position: String(start), behind: 10, lastStatus: 503 });
    expect(new Set(shop.posts.map(({ id }) => id)).size).toBe(1);
    isUp = true;
    await eventually(() => shop.taken.length >= 10);
    expect(shop.taken).toEqual(await positionsAfter(store.sql, start));
    expectStopped(await down.end('SIGTERM'));
    expect(down.stderr.join('\n')).not.toContain(SECRET.slice(8));
    expect(down.stdout).toEqual([]);
  });

  test('that fails at random, resets connections and outlives killed senders gets everything in order', async () => {
    const start = await positionNow(store.sql);
    const shop = await receiver((response, post) => {
      if (post % 5 === 1) response.writeHead(500).end('no');
      else if (post % 5 === 2) response.destroy();
      else if (post % 5 === 3) {
        response.writeHead(200, { 'content-length': '10' }).write('x');
        setImmediate(() => response.destroy());
      } else response.writeHead(204).end();
    });
    await ran('--name', 'shop', '--once', '--from', 'now');
    await movePrices(store.sql, 40);
    for (let kill = 0; kill < 3; kill += 1) {
      const before = shop.posts.length;
      await using program = follow('--name', 'shop', '--webhook', shop.url, '--batch', '7');
      await eventually(() => shop.posts.length > before + 1);
      await program.end('SIGKILL');
    }
    await using last = follow('--name', 'shop', '--webhook', shop.url, '--batch', '7');
    // The killed processes may have left nothing to do.
    await eventually(() => said(last, 'follower.started').length > 0);
    await eventually(async () => (await readFollowers(store.sql))[0]?.behind === 0);
    expectStopped(await last.end('SIGTERM'));
    expect(fresh(shop.taken)).toEqual(await positionsAfter(store.sql, start));
  });

  test('that refused batches gets them as dead letters when they are resent, with the same ids', async () => {
    let refuses = true;
    const shop = await receiver((response) => response.writeHead(refuses ? 422 : 200).end('no such field'));
    await ran('--name', 'shop', '--once');
    const start = await positionNow(store.sql);
    await movePrices(store.sql, 2);
    const once = ['--name', 'shop', '--webhook', shop.url, '--attempts', '1', '--once'];
    expect((await ran(...once)).code).toBe(0);
    const listed = await ran('--name', 'shop', '--dead-letters', '--json');
    expect(JSON.parse(listed.stdout)).toMatchObject({
      changes: 2,
      lastStatus: 422,
      lastSaid: 'no such field',
    });
    const again = ['--name', 'shop', '--resend', '--webhook', shop.url];
    expect(await ran(...again)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('422 no such field'),
    });
    refuses = false;
    expect(await ran(...again)).toMatchObject({ code: 0, stdout: expect.stringContaining('taken') });
    expect(new Set(shop.posts.map(({ id }) => id)).size).toBe(1);
    expect(shop.taken).toEqual(await positionsAfter(store.sql, start));
    expect((await ran('--name', 'shop', '--dead-letters')).stdout).toBe('shop has no dead letters');
    expect(await ran('--name', 'shop', '--forget')).toMatchObject({ code: 0, stdout: 'shop is forgotten' });
    expect(await ran('--name', 'shop', '--forget')).toMatchObject({ code: 1 });
  });

  test('that answers 410 ends its process, which logs why', async () => {
    const shop = await receiver((response) => response.writeHead(410).end());
    await ran('--name', 'shop', '--once');
    await movePrices(store.sql, 1);
    const { code, stderr } = await ran('--name', 'shop', '--webhook', shop.url);
    expect(code).toBe(1);
    expect(stderr).toContain('follower.unwanted');
    expect((await readFollowers(store.sql))[0]?.behind).toBe(1);
  });

  test('needs a secret, and an address that is allowed', async () => {
    const args = ['follow', '--name', 'shop', '--webhook', 'http://127.0.0.1:1/'];
    expect(await runProgram(args, { DATABASE_URL: store.url })).toMatchObject({
      code: 78,
      stderr: expect.stringMatching(/^--webhook: .*WEBHOOK_ALLOW_PRIVATE[^]*\nWEBHOOK_SECRET: not set/),
    });
    const folder = await mkdtemp(join(tmpdir(), 'follow-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, 'secret'), 'whsec_short');
    const wrong = await runProgram(
      args,
      env({ WEBHOOK_SECRET: undefined, WEBHOOK_SECRET_FILE: join(folder, 'secret') }),
    );
    expect(wrong).toMatchObject({ code: 78, stderr: expect.stringContaining('WEBHOOK_SECRET_FILE') });
    expect(wrong.stderr).not.toContain('short');
  });
});

describe('two processes of one name', () => {
  test('never both deliver: the second ends and says who has the name, and may start once that is gone', async () => {
    await using first = follow('--name', 'shop');
    await known();
    const second = await ran('--name', 'shop');
    expect(second).toMatchObject({ code: 1, stdout: '' });
    expect(second.stderr).toContain(`(process ${first.pid}) follows as shop already`);
    await using third = follow('--name', 'shop');
    await first.end('SIGKILL');
    await eventually(() => said(third, 'follower.started').length > 0);
    await movePrices(store.sql, 2);
    await eventually(() => third.stdout.length === 2);
  });
});

test('a terminated session is replaced, and nothing is missing', async () => {
  const start = await positionNow(store.sql);
  await using program = follow('--name', 'shop');
  // A follower whose session is terminated before it has started ends.
  await eventually(() => said(program, 'follower.started').length > 0);
  for (let round = 0; round < 3; round += 1) {
    await movePrices(store.sql, 2);
    await eventually(async () => {
      const [row] = await store.sql<[{ n: number }]>`
        select count(pg_terminate_backend(pid))::int as n from pg_stat_activity
        where datname = current_database() and application_name = 'catalog-mirror follow shop'`;
      return row.n > 0;
    });
  }
  await eventually(() => fresh(positionsOf(program.stdout)).length === 6);
  expect(fresh(positionsOf(program.stdout))).toEqual(await positionsAfter(store.sql, start));
});

test('a terminated session whose connection stays open is replaced, also during a delivery', async () => {
  const start = await positionNow(store.sql);
  await using port = await holdingPort(store.url);
  const heard = Promise.withResolvers<void>();
  const shop = await receiver((response, post) => {
    if (post > 1) return void response.end();
    void (async () => {
      // Between two statements: the driver is told of the end, and refuses the next statement.
      await store.sql`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name = 'catalog-mirror follow shop'`;
      await eventually(async () => {
        const sessions = await store.sql`
          select from pg_stat_activity where datname = current_database() and application_name = 'catalog-mirror follow shop'`;
        return sessions.length === 0;
      });
      await pause(200);
      response.end();
      heard.resolve();
    })();
  });
  const through = { DATABASE_URL: throughPort(store.url, port) };
  await using program = startProgram(['follow', '--name', 'shop', '--webhook', shop.url], env(through));
  await eventually(() => said(program, 'follower.started').length > 0);
  await movePrices(store.sql, 2);
  await heard.promise;
  await eventually(() => shop.posts.length > 1);
  await movePrices(store.sql, 1);
  const all = await positionsAfter(store.sql, start);
  await eventually(() => fresh(shop.taken).length === all.length);
  expect(fresh(shop.taken)).toEqual(all);
  expectStopped(await program.end('SIGTERM'));
});

test('a process that is told to stop while it waits for Postgres at its start exits with success', async () => {
  await using deaf = await deafPort();
  await using program = startProgram(['follow'], env({ DATABASE_URL: throughPort(store.url, deaf) }));
  await eventually(() => deaf.connections > 0);
  expectStopped(await program.end('SIGTERM'));
});
