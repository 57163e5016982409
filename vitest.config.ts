import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { roomForFiles } from './test/support/room.ts';

// For all workers.
process.env['TMPDIR'] ??= roomForFiles();
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/compiled');

/** Half as many again as there are processors, as tests also wait; six on two took a tenth longer than three, in each other's way. */
const WORKERS = Math.ceil(1.5 * availableParallelism());

/** Simulations make garbage by the gigabyte: with more room it is collected less often, and by one thread where all processors work anyway. */
const ROOMY = ['--max-semi-space-size=64', '--initial-old-space-size=1024', '--single-threaded-gc'];

/** Files that take longest: begun last, one of them would go on alone while the other workers have nothing left to do. */
const LONGEST = [
  'test/hostile/bombs',
  'test/faults/silent-connections.timed',
  'test/e2e/account',
  'test/e2e/short-outages',
  'test/e2e/pause',
  'test/docs/commands',
  'test/docs/demo',
  'test/sim/two-daemons',
  'test/sim/one-daemon',
  'test/sim/day',
  'test/sim/weather',
  'test/sim/quiet',
  'test/process/failpoints',
  'test/process/kill',
  'test/process/follower-kill',
  'test/faults/partner-socket',
  'test/process/embedded',
  'test/process/command-line',
  'test/doctor/doctor',
  'test/migrations/migrations',
  'test/faults/queue-clocks',
  'test/faults/silent-connections.e2e',
  'test/security/traps',
  'test/status/pictures',
  'test/status/page',
  'test/contract/catalog-age',
  'test/contract/readiness',
  'test/e2e/audit',
  'test/store/audit-model',
  'test/hostile/manifest-files',
  'test/faults/postgres-socket',
  'test/bench/freshness',
  'test/bench/capacity',
];

/**
 * What takes minutes of a processor, and what starts, kills, cuts off and crowds programs of its own: `npm run test:long` runs it, and
 * `.ci/run` as much of that as it has time for. One whole life of a mirror and the command line stay in `npm test`.
 */
export const LONG = [
  'test/auth/rotation.e2e.test.ts',
  'test/bench/freshness*.test.ts',
  'test/bench/{capacity,ceiling}.test.ts',
  'test/bench/{ingest.pg,works.e2e}.test.ts',
  'test/cli/*.e2e.test.ts',
  'test/cli/{closed,impaired}.pg.test.ts',
  'test/contract/{auth-evidence,bad-lines,broken-chain,bulk-readings,catalog-age}.e2e.test.ts',
  'test/contract/{catalog-check,manifest-refusals,readiness,removed,retries}.e2e.test.ts',
  'test/docs/{commands,demo}.e2e.test.ts',
  'test/doctor/*.e2e.test.ts',
  'test/e2e/!(mirror).e2e.test.ts',
  'test/embedded/*.e2e.test.ts',
  'test/faults/*.e2e.test.ts',
  'test/examples/follower.pg.test.ts',
  'test/follow/follow.e2e.test.ts',
  'test/follow/{restored,standby}.pg.test.ts',
  'test/hostile/*.pg.test.ts',
  'test/migrations/{migrations,occupied,roles}.pg.test.ts',
  'test/ops/{fleets,rules}.test.ts',
  'test/ops/{pictures,servers}.e2e.test.ts',
  'test/package/pack.e2e.test.ts',
  'test/process/!(command-line).e2e.test.ts',
  'test/security/*.e2e.test.ts',
  'test/sim/{day,first-hour,price-cache,quiet,standstill,weather}.pg.test.ts',
  'test/status/*.e2e.test.ts',
  'test/status/locked.pg.test.ts',
  'test/store/*.e2e.test.ts',
  'test/store/{at-work,deleted-by-hand,failover,old-statistics,standby-read}.pg.test.ts',
  'test/world/*.e2e.test.ts',
];
/** What draws several times as many histories there, or simulates more of them. */
export const LONGER = [
  'test/**/*-model.pg.test.ts',
  'test/cli/verify.test.ts',
  'test/config-urls.test.ts',
  'test/doctor/lacking.pg.test.ts',
  'test/follow/{batch,follower.pg}.test.ts',
  'test/pace/fleet-model.test.ts',
  'test/sandbox/hints.test.ts',
  'test/status/faces.pg.test.ts',
  'test/store/{explain,refresh-sessions}.pg.test.ts',
  'test/sync/{deferring,failing-calls,general-errors,promises,refused-route,scarce,scarce-promises}.test.ts',
  'test/sim/{one-daemon,two-daemons}.pg.test.ts',
];

/** What speaks over sockets with servers that it starts: the sandbox, stand-ins for the partner, proxies, collectors. */
export const SERVED = [
  'test/cli/pending-file.test.ts',
  'test/{conformance,sandbox}/*.test.ts',
  'test/follow/webhook*.test.ts',
  'test/ops/compose.test.ts',
  'test/partner/{cached-answers,client,manifest-file*,no-proxy,odd-bytes,odd-bytes-model,page-in-place,proxy*,timeouts}.test.ts',
  'test/queues/redis-away.test.ts',
  'test/security/{error-causes,http-*,ssrf}.test.ts',
  'test/support/proxy.test.ts',
  'test/telemetry/{server,tracing}.test.ts',
];

/** For projects with drawn properties. */
const setupFiles = ['test/support/properties.ts'];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const at = LONGEST.findIndex((name) => moduleId.includes(name));
      return at === -1 ? LONGEST.length : at;
    };
    // oxlint-disable-next-line unicorn/no-array-sort -- a sequencer is no array
    const usual = await super.sort(files);
    return usual.toSorted((a, b) => place(a) - place(b));
  }
}

export default defineConfig({
  test: {
    // Node.js itself loads the sources, as in the product.
    experimental: { viteModuleRunner: false },
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: 'static',
          include: ['test/static/**/*.test.ts'],
          isolate: false,
          maxWorkers: WORKERS,
        },
      },
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/static/**', 'test/**/*.{pg,e2e,timed}.test.ts', ...LONG, ...SERVED],
          setupFiles,
          // They leave nothing behind: loading everything anew for each file took a third of their time.
          isolate: false,
          // Simulations of days compute for seconds, longer on a busy machine; no unit test waits.
          testTimeout: 120_000,
          maxWorkers: WORKERS,
          execArgv: ROOMY,
        },
      },
      {
        test: {
          name: 'sockets',
          include: SERVED,
          exclude: ['test/**/*.{pg,e2e,timed}.test.ts'],
          setupFiles,
          isolate: false,
          testTimeout: 120_000,
          maxWorkers: WORKERS,
          execArgv: ROOMY,
        },
      },
      {
        test: {
          name: 'pg',
          include: ['test/**/*.{pg,e2e}.test.ts'],
          exclude: LONG,
          globalSetup: ['test/globalSetup.ts'],
          setupFiles,
          // As above: nothing is kept between files but loaded modules, and each file has a database of its own.
          isolate: false,
          // Beyond what `eventually` waits for, so that it is the one that says what did not come.
          testTimeout: 180_000,
          hookTimeout: 180_000,
          maxWorkers: WORKERS,
          execArgv: ROOMY,
        },
      },
      {
        test: {
          name: 'long',
          include: [...LONG, ...LONGER],
          globalSetup: ['test/globalSetup.ts'],
          setupFiles,
          isolate: false,
          env: { LONG_RUN: '1' },
          testTimeout: 180_000,
          hookTimeout: 180_000,
          maxWorkers: WORKERS,
          execArgv: ROOMY,
        },
      },
      {
        // What is judged by the clock of the wall comes after all others. It waits most of its time: three files at once leave room.
        test: {
          name: 'timed',
          include: ['test/**/*.timed.test.ts'],
          globalSetup: ['test/globalSetup.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
