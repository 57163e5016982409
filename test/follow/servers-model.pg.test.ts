import fc from 'fast-check';
import { expect, test } from 'vitest';
import { pause } from '../support/eventually.ts';
import { type PieceResult, when } from '../support/proxy.ts';
import { emptyFolder } from '../support/servers-in-turn.ts';
import { runs } from '../support/soak.ts';
import { Command, type Crash, type Drawn, Follows, Into } from './drawn-consumers.ts';
import { Clusters, Databases, type Servers, settled, SKUS } from './drawn-servers.ts';

/*
 * Consumers of every kind, while their connections, their servers and they themselves fail at any point. None
 * misses a change or gets two changes of a SKU out of order, and each is told if what it has is lost with a
 * server.
 */

const CONSUMERS = ['follow', 'into', 'into', 'command', 'unnamed', 'once'] as const;
/** Text in a statement or its answer that triggers a fault. */
const PATTERNS = ['commit', 'begin', 'sending_to', 'shop', 'changes', 'followers'];

const who = fc.nat(2);
const constant = <T extends string>(kind: T) => fc.constant({ kind });
const common = [
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('write' as const),
      skus: fc.array(fc.constantFrom(...SKUS), { minLength: 1, maxLength: 8 }),
    }),
  },
  { weight: 4, arbitrary: constant('settle') },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('pause' as const), ms: fc.nat(150) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('crash' as const),
      who,
      at: fc.constantFrom<Crash[]>('before', 'between', 'after'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('reset' as const), who }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('cut' as const),
      who,
      direction: fc.constantFrom('to-server' as const, 'to-client' as const),
      pattern: fc.constantFrom(...PATTERNS),
      result: fc.constantFrom<PieceResult[]>('cut', 'pass-and-cut', 'silence', 'pass-and-silence'),
    }),
  },
  { weight: 2, arbitrary: constant('keep') },
  { weight: 2, arbitrary: constant('restore') },
] as const;
const how = fc.constantFrom('stopped' as const, 'crashed' as const);
const ofClusters = [
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('restart' as const), how }) },
  { weight: 3, arbitrary: constant('standby') },
  { weight: 2, arbitrary: constant('lag') },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('fail over' as const), how }) },
] as const;

const anyStep = fc.oneof(...common);
const anyClusterStep = fc.oneof(...common, ...ofClusters);
type Step = typeof anyClusterStep extends fc.Arbitrary<infer T> ? T : never;

const chosen = fc.subarray([...CONSUMERS], { minLength: 3, maxLength: 3 });
const historyOf = (step: fc.Arbitrary<Step>, maxLength: number) =>
  fc.record({ consumers: chosen, steps: fc.array(step, { minLength: 4, maxLength }) });
type History = ReturnType<typeof historyOf> extends fc.Arbitrary<infer T> ? T : never;

async function consumerOf(kind: (typeof CONSUMERS)[number], servers: Servers): Promise<Drawn> {
  const way = await servers.way();
  if (kind === 'follow') return new Follows(servers, way);
  if (kind === 'into') return new Into(servers, way);
  if (kind === 'command') return new Command(servers, way, 'shop');
  return kind === 'once' ? new Command(servers, way, 'cron', true) : new Command(servers, way, null);
}

async function take(step: Step, servers: Servers, consumers: readonly Drawn[]): Promise<void> {
  const consumer = 'who' in step ? consumers[step.who] : undefined;
  if (step.kind === 'write') await servers.write(step.skus);
  else if (step.kind === 'settle') await allSettled(servers, consumers);
  else if (step.kind === 'pause') await pause(step.ms);
  else if (step.kind === 'keep') await servers.keep();
  else if (step.kind === 'restore') await servers.restore();
  else if (consumer !== undefined) disturb(step, consumer);
  else if (servers instanceof Clusters) await replace(step, servers);
}

function disturb(step: Step, consumer: Drawn): void {
  if (step.kind === 'crash') consumer.crash = step.at;
  else if (step.kind === 'reset') consumer.proxy.reset();
  else if (step.kind === 'cut') {
    const { direction, pattern } = step;
    // The command waits half a minute for an answer.
    const isShort = consumer instanceof Command && step.result.endsWith('silence');
    consumer.proxy.watch(when(direction, { pattern }, isShort ? 'cut' : step.result).watcher);
  }
}

async function replace(step: Step, servers: Clusters): Promise<void> {
  if (step.kind === 'restart') await servers.restart(step.how);
  else if (step.kind === 'standby') await servers.makeStandby();
  else if (step.kind === 'lag') servers.lag();
  else if (step.kind === 'fail over') await servers.failOver(step.how);
}

async function allSettled(servers: Servers, consumers: readonly Drawn[]): Promise<void> {
  servers.heal();
  // A consumer that has what was lost is told with the next change.
  await servers.write(['A']);
  await Promise.all(consumers.map((one) => settled(() => one.missing(), `${one.constructor.name} has it`)));
}

async function play({ consumers: kinds, steps }: History, servers: Servers): Promise<void> {
  const consumers: Drawn[] = [];
  try {
    await servers.keep();
    for (const kind of kinds) consumers.push(await consumerOf(kind, servers));
    const failed = Promise.race(consumers.map((one) => one.begin().then(() => new Promise<never>(() => {}))));
    const live = async () => {
      for (const step of steps) await take(step, servers, consumers);
      await allSettled(servers, consumers);
    };
    await Promise.race([live(), failed]);
    for (const { told } of consumers) expect(told).toBeLessThanOrEqual(servers.losses);
  } finally {
    await Promise.allSettled(consumers.map((one) => one.end()));
    await servers.end();
  }
}

test('whatever happens to their database, consumers get each change in order, or are told of a loss', async () => {
  await fc.assert(
    fc.asyncProperty(historyOf(anyStep, 12), async (history) => play(history, await Databases.make())),
    { numRuns: runs(1, 15), endOnFailure: true },
  );
});

/* Found by drawing. Nothing has changed yet, but a position that they were told of, or their name, is gone. */
test('a backup from before anybody followed counts as a loss to those who did', async () => {
  await play(
    { consumers: ['follow', 'into', 'command'], steps: [{ kind: 'pause', ms: 135 }, { kind: 'restore' }] },
    await Databases.make(),
  );
});

test.runIf(process.env['LONG_RUN'] === '1')(
  'whatever server replaces another, consumers get each change in order, or are told of a loss',
  { timeout: 300_000 },
  async () => {
    const room = await emptyFolder();
    const template = await Clusters.template(room);
    await fc.assert(
      fc.asyncProperty(historyOf(anyClusterStep, 20), async (history) =>
        play(history, await Clusters.make(room, template)),
      ),
      { numRuns: runs(1, 12), endOnFailure: true },
    );
  },
);
