import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { FILLED, holds, type Program, runProgram, startProgram } from '../support/process.ts';
import { runs } from '../support/soak.ts';
import { createStack, type Stack } from '../support/stack.ts';
import { KINDS, startCrowd } from './crowd.ts';

const SEED = Number(process.env['SEED'] ?? 11);

let stack: Stack;
let daemon: Program;
let port: number;

beforeAll(async () => {
  stack = await createStack({ sandbox: { skus: 50, liveShare: 0, seed: 3 }, env: { LOG_LEVEL: 'info' } });
  daemon = startProgram(['run'], stack.env);
  port = Number((await daemon.until('app.started'))['port']);
  await eventually(() => holds(stack.sql, FILLED), { what: 'the fill' });
});

afterAll(async () => {
  await daemon[Symbol.asyncDispose]();
  await stack[Symbol.asyncDispose]();
});

/** What the daemon holds now, according to the system. */
const openFiles = () => readdirSync(`/proc/${daemon.pid}/fd`).length;
const memory = () => {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${daemon.pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
};

/** Asks like the container, which is unhealthy after three attempts in a row without an answer. */
async function isHealthy() {
  const asked = [];
  while (asked.length < 3 && asked.at(-1)?.code !== 0) asked.push(await healthcheck());
  return { healthy: asked.at(-1)?.code === 0, said: asked.map(({ stdout }) => stdout).join('\n') };
}

async function healthcheck() {
  const { code, stdout } = await runProgram(['healthcheck'], { HTTP_PORT: String(port) });
  return { code, stdout };
}

test('connections that never send a request do not keep healthcheck out', async () => {
  using crowd = startCrowd(port, [['half a request', 300]]);
  const seen = [];
  for (let n = 0; n < 5; n += 1) seen.push(await healthcheck());
  expect(seen.map(({ code }) => code)).toEqual([0, 0, 0, 0, 0]);
  expect(crowd.dialled).toBeGreaterThan(300);
});

/** The server's limit of connections, plus those just being accepted or closed. */
const MAX_FILES = 256 + 40;
const MAX_MEMORY = 256 * 1024 ** 2;

test('healthcheck gets through every crowd, and the crowd exhausts neither memory nor file descriptors', async () => {
  const before = { files: openFiles(), memory: memory() };
  const member = fc.tuple(fc.constantFrom(...KINDS), fc.integer({ min: 20, max: 150 }));
  await fc.assert(
    fc.asyncProperty(fc.array(member, { minLength: 2, maxLength: 5 }), async (members) => {
      using crowd = startCrowd(port, members);
      const first = await isHealthy();
      const files = openFiles();
      const second = await isHealthy();
      expect([first.healthy, second.healthy], `${first.said}\n${second.said}`).toEqual([true, true]);
      expect(files - before.files).toBeLessThan(MAX_FILES);
      expect(memory() - before.memory).toBeLessThan(MAX_MEMORY);
      expect(crowd.dialled).toBeGreaterThan(0);
    }),
    { seed: SEED, numRuns: runs(6), endOnFailure: true },
  );
  await eventually(() => openFiles() <= before.files + 4, { what: 'the sockets to be closed' });
  expect(daemon.stderr).toEqual([]);
  // However many there were: one line at once, and one after a minute.
  expect(daemon.logged('http.crowded').length).toBeLessThan(4);
  for (const path of ['/livez', '/readyz', '/metrics', '/'])
    expect((await daemon.get(path)).status).toBe(200);
});
