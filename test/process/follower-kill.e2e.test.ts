import { randomInt } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { World } from '../../src/sandbox/index.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { type ChangeRow, expectCopied, MirrorCopy } from '../support/copy.ts';
import { eventually, pause } from '../support/eventually.ts';
import { nudge, randomFrom } from '../support/market.ts';
import { expectCursorNotAhead } from '../support/oracle.ts';
import { type Program, runProgram, startProgram } from '../support/process.ts';
import { runs } from '../support/soak.ts';
import { createStack } from '../support/stack.ts';
import { expectTrueAtTheEnd } from './recovery.ts';

/*
 * The daemon and two followers, each killed by SIGKILL at random moments while the others continue:
 * `catalog-mirror follow`, whose lines come at least once, and a seller's program with `followInto`, which gets
 * each change exactly once.
 */

const KILLS = runs(20);
const SKUS = 400;
/** The longest time between two kills, in milliseconds. */
const LATEST_MS = 800;
const COPYING = fileURLToPath(new URL('copying-follower.ts', import.meta.url));

/**
 * Changes the market between two kills in ways that the catalog reports: moves, and SKUs that go, come or cross.
 * SKUs that crossed move no more, since nothing reports a live price.
 */
function stir(world: World, crossed: Set<string>, random: () => number, round: number): void {
  const listed = [...world.truth().values()].filter(
    (row) => row.listed && row.answer === 'record' && row.priceSource === 'snapshot' && !crossed.has(row.sku),
  );
  const some = (most: number) =>
    Array.from({ length: Math.floor(random() * most) }, () => listed[Math.floor(random() * listed.length)]);
  for (const row of some(20)) if (row !== undefined) nudge(world, row, round);
  for (const { sku } of some(3).filter((row) => row !== undefined)) {
    crossed.add(sku);
    world.cross(sku, 'live');
  }
  const gone = [...new Set(some(3).flatMap((row) => row?.sku ?? []))];
  for (const [n, sku] of gone.entries()) {
    if (n === 0) world.withdraw(sku);
    else world.remove(sku);
    world.add();
  }
  for (let more = 0; more < 2; more += 1) world.add();
  world.buildSnapshot();
}

/** Leaves out lines that a killed process cut off. */
const parsed = (lines: readonly string[]): ChangeRow[] =>
  lines.flatMap((line) => {
    try {
      const change = JSON.parse(line) as { position: number | string };
      return [{ ...change, position: String(change.position) } as ChangeRow];
    } catch {
      return [];
    }
  });

/** Leaves out repetitions: every position once, in order. */
function fresh(lines: readonly ChangeRow[]): ChangeRow[] {
  let last = 0;
  return lines.filter(({ position }) => Number(position) > last && ((last = Number(position)), true));
}

async function expectWhole(
  sql: Sql,
  changes: readonly ChangeRow[],
  copied: readonly ChangeRow[] = [],
): Promise<void> {
  const copy = new MirrorCopy();
  copy.apply(copied, true);
  copy.apply(changes, copied.length > 0);
  expect(copy.faults).toEqual([]);
  await expectCopied(sql, copy);
}

test(
  `the daemon and its followers, killed ${KILLS} times: every copy equals the mirror`,
  { timeout: 120_000 + KILLS * 4000 },
  async () => {
    const seed = Number(process.env['SEED'] ?? randomInt(2 ** 31));
    console.log(`seed ${seed}`);
    const random = randomFrom(seed);
    await using stack = await createStack({
      sandbox: { skus: SKUS, liveShare: 0.05, latencyMs: 15, seed },
      env: { DELTA_INTERVAL: '1s' },
    });
    const { sql, env, sandbox } = stack;
    await sql`create schema shop`;
    await sql`create table shop.changes (id bigint generated always as identity, change json not null, is_copy boolean not null)`;
    const crossed = new Set<string>();
    const printing: Program[] = [];
    const starts: Readonly<Record<string, () => Program>> = {
      daemon: () => startProgram(['run'], env),
      copying: () => startProgram([COPYING], env, { bin: process.execPath }),
      printing: () => {
        const program = startProgram(['follow', '--name', 'printed', '--from', 'oldest'], env);
        printing.push(program);
        return program;
      },
    };
    const running = new Map(Object.entries(starts).map(([name, start]) => [name, start()]));
    for (let kill = 0; kill < KILLS; kill += 1) {
      await pause(random() * LATEST_MS);
      const names = [...running.keys()];
      const name = names[Math.floor(random() * names.length)] ?? '';
      const program = running.get(name);
      const ended = await program?.end('SIGKILL');
      // It was alive until then: none of them ends because another does.
      expect(ended, `${name}: ${program?.stderr.join('\n')}`).toMatchObject({
        code: null,
        signal: 'SIGKILL',
      });
      await expectCursorNotAhead(sql, sandbox.world);
      stir(sandbox.world, crossed, random, kill);
      if (random() < 0.2)
        await sql`update catalog_internal.tasks set next_at = now() where task = 'manifest'`;
      const start = starts[name];
      if (start !== undefined) running.set(name, start());
    }
    await running.get('daemon')?.end('SIGKILL');
    await expectTrueAtTheEnd(stack);

    const all = await sql<ChangeRow[]>`select * from catalog.changes(0, 1000000)`;
    await running.get('printing')?.end('SIGKILL');
    const rest = await runProgram(['follow', '--name', 'printed', '--once'], env);
    const lines = [...printing.flatMap(({ stdout }) => stdout), ...rest.stdout.split('\n')];
    const printed = fresh(parsed(lines));
    expect(printed.map(({ position }) => position)).toEqual(all.map(({ position }) => position));
    await expectWhole(sql, printed);

    await eventually(async () => {
      const [row] = await sql`select position from shop.positions`;
      return row?.['position'] === all.at(-1)?.position;
    });
    await running.get('copying')?.end('SIGKILL');
    const rows = await sql<
      { change: ChangeRow; is_copy: boolean }[]
    >`select change, is_copy from shop.changes order by id`;
    const copied = rows.filter((row) => row.is_copy).map(({ change }) => change);
    const changes = rows.filter((row) => !row.is_copy).map(({ change }) => change);
    // Exactly once: no position twice, and none missing.
    expect(changes.map(({ position }) => position)).toEqual(
      all.map(({ position }) => position).slice(all.length - changes.length),
    );
    await expectWhole(sql, changes, copied);
  },
);
