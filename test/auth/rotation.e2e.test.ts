import { mkdirSync, renameSync, rmdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type ExpectStatic, test, type TestContext, vi } from 'vitest';
import { processSources } from '../../src/config/config.ts';
import type { App } from '../../src/daemon/app.ts';
import { MAX_UNDER_WAY } from '../../src/sync/reprice/slice.ts';
import { everythingToDo, letBackoffEnd } from '../contract/backoff.ts';
import { logged, nextLog, readyz } from '../contract/harness.ts';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { temporaryFolder } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';
import { seen } from './views.ts';

// Daemons in this process, which mostly wait. Each holds several dozen of the server's 500 connections.
vi.setConfig({ maxConcurrency: 5 });

const OLD = 'old-secret-6f1d';
const NEW = 'new-secret-93ab';
const OVERLAP_MS = 300_000;

/** A daemon at work on a filled mirror, with its secret in a file, and the partner's clock, which tests can advance. */
interface Scene extends AsyncDisposable {
  readonly stack: Stack;
  readonly folder: string;
  readonly file: string;
  readonly app: App;
  /** The partner learns the new secret; both authenticate for five minutes. */
  readonly rotate: () => void;
  /** Ends the five minutes. */
  readonly overlapEnds: () => void;
  /** Returns the statuses of the API requests since the scene began. */
  readonly statuses: () => number[];
}

async function scene(
  { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
  seed: number,
  write = (file: string) => writeFileSync(file, OLD),
): Promise<Scene> {
  const folder = await temporaryFolder(onTestFinished);
  const file = join(folder, 'secret');
  write(file);
  let shiftMs = 0;
  const stack = await createStack({
    sandbox: {
      skus: 60,
      seed,
      secret: OLD,
      now: () => Date.now() + shiftMs,
    },
    env: {
      PARTNER_SECRET: '',
      PARTNER_SECRET_FILE: file,
      PARTNER_BACKOFF: '10m',
      PARTNER_RATE_WINDOW: '1s',
      DELTA_INTERVAL: '500ms',
      BULK_MAX_SKUS: '10',
    },
    readFile: processSources.readFile,
  });
  const app = await stack.start();
  await stack.caughtUp();
  const from = stack.sandbox.requests.length;
  return {
    stack,
    folder,
    file,
    app,
    rotate: () => stack.sandbox.rotateSecret(NEW, OVERLAP_MS),
    overlapEnds: () => void (shiftMs += OVERLAP_MS),
    statuses: () =>
      stack.sandbox.requests.slice(from).flatMap(({ route, status }) => (route === 'file' ? [] : [status])),
    [Symbol.asyncDispose]: () => stack[Symbol.asyncDispose](),
  };
}

/** How the file gets the new secret: `before` the old one expires, and `after` its first refusal. */
interface Way {
  readonly name: string;
  readonly write?: (file: string) => void;
  readonly before?: (scene: Scene) => void;
  readonly after?: (scene: Scene) => void;
}

/**
 * Mounts a secret like Kubernetes: the file is a link through `..data`, which links to the present version's
 * folder.
 */
function mounted(file: string, version: string, secret: string): void {
  const folder = join(file, '..');
  mkdirSync(join(folder, version));
  writeFileSync(join(folder, version, 'secret'), secret);
  symlinkSync(version, join(folder, '..data_tmp'));
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
}

const WAYS: readonly Way[] = [
  {
    name: 'renamed into place',
    before({ file, folder }) {
      writeFileSync(join(folder, 'next'), NEW);
      renameSync(join(folder, 'next'), file);
    },
  },
  { name: 'written with a newline at its end', before: ({ file }) => writeFileSync(file, `${NEW}\n`) },
  {
    name: 'swapped behind the link of a Kubernetes mount',
    write(file) {
      mounted(file, '..2026_11_21', OLD);
      symlinkSync(join('..data', 'secret'), file);
    },
    before: ({ file }) => mounted(file, '..2026_11_22', NEW),
  },
  {
    name: 'half written when it is read after the refusal, whole before the half-open request',
    before: ({ file }) => writeFileSync(file, NEW.slice(0, 9)),
    after: ({ file }) => writeFileSync(file, NEW),
  },
  {
    name: 'empty when it is read after the refusal, whole before the half-open request',
    before: ({ file }) => writeFileSync(file, ''),
    after: ({ file }) => writeFileSync(file, NEW),
  },
  {
    name: 'gone when it is read after the refusal, back before the half-open request',
    before: ({ file }) => rmSync(file),
    after: ({ file }) => writeFileSync(file, NEW),
  },
  {
    name: 'unreadable when it is read after the refusal, readable before the half-open request',
    before({ file }) {
      rmSync(file);
      mkdirSync(file);
    },
    after({ file }) {
      rmdirSync(file);
      writeFileSync(file, NEW);
    },
  },
  { name: 'not written before the old one has ended', after: ({ file }) => writeFileSync(file, NEW) },
];

/** Checks that the daemon works, all its requests are let through, and nothing is degraded. */
async function expectAtWork(expect: ExpectStatic, { stack, app, statuses }: Scene): Promise<void> {
  const from = statuses().length;
  await stack.everythingDue();
  await stack.caughtUp();
  expect(new Set(statuses().slice(from))).toEqual(new Set([200]));
  expect(await readyz(app)).toMatchObject({ status: 200, body: { degraded: [] } });
}

function expectNoSecretIn(expect: ExpectStatic, { stack }: Scene): void {
  const text = JSON.stringify(stack.logs);
  for (const secret of [OLD, NEW, NEW.slice(0, 9)]) expect(text).not.toContain(secret);
}

/** How many requests may be in flight at once: bulk calls, a delta, and two of the manifest route. */
const UNDER_WAY = MAX_UNDER_WAY + 3;

describe.concurrent('a secret that is rotated in its file,', () => {
  WAYS.forEach((way, i) => {
    test(`${way.name}: no failure in the overlap, then one back-off, and then the new secret works`, async ({
      expect,
      onTestFinished,
    }) => {
      await using now = await scene({ onTestFinished }, 400 + i, way.write);
      const { stack, statuses } = now;
      now.rotate();
      way.before?.(now);
      await expectAtWork(expect, now);

      now.overlapEnds();
      await everythingToDo(stack);
      await nextLog(stack, 'pace.silenced', 0);
      await eventually(() => expect(statuses()).not.toContain(0));
      way.after?.(now);
      await letBackoffEnd(stack.sql);
      await nextLog(stack, 'pace.resumed', 0);
      await expectAtWork(expect, now);

      const refused = statuses().filter((status) => status !== 200);
      expect(refused.length).toBeGreaterThan(0);
      expect(refused.length).toBeLessThanOrEqual(UNDER_WAY);
      expect(statuses().slice(statuses().indexOf(403) + refused.length)).not.toContain(403);
      expect(logged(stack, 'pace.silenced')).toMatchObject([{ episodes: 1 }]);
      expect(logged(stack, 'credential.changed').length).toBeGreaterThan(0);
      expect(JSON.stringify(seen(stack.logs))).not.toContain('credential is suspected');
      expectNoSecretIn(expect, now);
      await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
    });
  });

  test('while requests are in flight: all of them are refused, which counts as one refusal', async ({
    expect,
    onTestFinished,
  }) => {
    await using now = await scene({ onTestFinished }, 431);
    const { stack, file, statuses } = now;
    // Longer than the daemon takes to give its workers something to do.
    stack.sandbox.faults.add({ route: '*', times: Infinity, delayMs: 2500 });
    now.rotate();
    writeFileSync(file, NEW);
    now.overlapEnds();
    await everythingToDo(stack);
    await nextLog(stack, 'pace.silenced', 0);
    await eventually(() => expect(statuses()).not.toContain(0));
    const refused = statuses().length;
    stack.sandbox.faults.clear();
    expect(refused).toBeGreaterThan(1);
    expect(refused).toBeLessThanOrEqual(UNDER_WAY);
    expect(logged(stack, 'pace.silenced')).toMatchObject([{ episodes: 1 }]);
    await letBackoffEnd(stack.sql);
    await nextLog(stack, 'pace.resumed', 0);
    await stack.caughtUp();
    expect(statuses().slice(refused)).not.toContain(403);
  });

  test('before the partner knows the new one: a running daemon keeps the old one, a new daemon waits for it', async ({
    expect,
    onTestFinished,
  }) => {
    await using now = await scene({ onTestFinished }, 432);
    const { stack, file, app } = now;
    writeFileSync(file, NEW);
    await expectAtWork(expect, now);
    expect(logged(stack, 'credential.changed')).toEqual([]);

    await app.stop();
    const second = await stack.start();
    await everythingToDo(stack);
    await nextLog(stack, 'pace.silenced', 0);
    now.rotate();
    await letBackoffEnd(stack.sql);
    await nextLog(stack, 'pace.resumed', 0);
    await expectAtWork(expect, { ...now, app: second });
    now.overlapEnds();
    await expectAtWork(expect, { ...now, app: second });
    expect(logged(stack, 'pace.silenced')).toHaveLength(1);
  });

  test('half written for longer than a back-off: is refused once more, and then works', async ({
    expect,
    onTestFinished,
  }) => {
    await using now = await scene({ onTestFinished }, 433);
    const { stack, file } = now;
    now.rotate();
    writeFileSync(file, NEW.slice(0, 9));
    now.overlapEnds();
    await everythingToDo(stack);
    await nextLog(stack, 'pace.silenced', 0);
    await letBackoffEnd(stack.sql);
    await eventually(() => expect(logged(stack, 'pace.silenced')).toHaveLength(2));
    writeFileSync(file, NEW);
    await letBackoffEnd(stack.sql);
    await nextLog(stack, 'pace.resumed', 0);
    await expectAtWork(expect, now);
    expect(logged(stack, 'pace.silenced')).toHaveLength(2);
    expectNoSecretIn(expect, now);
  });

  test('beside a second daemon with the same file: costs one back-off for both', async ({
    expect,
    onTestFinished,
  }) => {
    await using now = await scene({ onTestFinished }, 434);
    const { stack, file } = now;
    const other = await stack.start();
    now.rotate();
    writeFileSync(file, NEW);
    now.overlapEnds();
    await everythingToDo(stack);
    await nextLog(stack, 'pace.silenced', 0);
    await letBackoffEnd(stack.sql);
    await nextLog(stack, 'pace.resumed', 0);
    // Each of them works after the other has stopped, so both have sent with the new secret.
    await expectAtWork(expect, now);
    await now.app.stop();
    await expectAtWork(expect, { ...now, app: other });
    expect(logged(stack, 'pace.silenced')).toHaveLength(1);
    expect(logged(stack, 'credential.changed')).toHaveLength(2);
  });
});
