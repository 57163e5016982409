import { randomInt } from 'node:crypto';
import { loadConfig, processSources } from '../config/config.ts';
import { systemClock } from '../lib/clock.ts';
import { shownJson } from '../lib/json.ts';
import { pauseStatus } from '../pace/pause.ts';
import { untilText } from '../status/pause.ts';
import { harmless } from '../status/style.ts';
import type { Sql } from '../store/connection/db.ts';
import { readPause } from '../store/sellers/pause.ts';
import { readDaemons } from '../store/setup/instance.ts';
import { drawSample, markForVerification, readVerified } from '../store/trust/verification.ts';
import { type Arguments, type Command, EXIT, numberOption, problemsIn, UsageError } from './command.ts';
import { withMirror } from './mirror.ts';
import { stopSignal } from './process.ts';
import { askAbout } from './verify/asking.ts';
import { reportOf, verificationOf } from './verify/report.ts';

const SKUS = 1000;
const MAX_SKUS = 100_000;

export const verify: Command = {
  summary:
    'refresh a random sample of SKUs and compare the share of correct prices with what p_right predicts',
  usage: 'verify [--skus 1000] [--seed <number>] [--json]',
  examples: [
    [
      'catalog-mirror verify',
      'refresh 1000 SKUs, which takes a daemon about a minute, and say what was right',
    ],
    [
      'catalog-mirror verify --skus 200 --json',
      'fewer, for programs; the wrong ones with all of their sizes',
    ],
  ],
  exits: ['ok', 'claim', 'failed', 'usage'],
  options: { skus: { type: 'string' }, seed: { type: 'string' }, json: { type: 'boolean' } },
  optionHelp: {
    skus: `SKUs to ask about (${SKUS}); they are refreshed by the daemon, within its pace`,
    seed: 'draw the same SKUs as a run before (its --json names it)',
    json: 'print one JSON object; shares are from 0 to 1, ages in seconds',
  },
  moreHelp: [
    'A SKU counts as right if none of its prices has changed when the partner answers. The claim is the mean of p_right.',
    'Once nothing is answered for two minutes, it ends, and reports what was.',
  ],
  positionals: false,
  problemsOf: problemsIn(sampleOf),
  async run({ print, ...args }) {
    const { skus, seed = randomInt(2 ** 31) } = sampleOf(args);
    const config = loadConfig(processSources.env, processSources.readFile, { need: 'database' });
    const signal = stopSignal(systemClock);
    const stopped = new AbortController();
    void signal.promise.then(() => stopped.abort());
    try {
      return await withMirror(config, async (sql, which) => {
        if (which !== null) process.stderr.write(`in ${which}:\n`);
        const found = await verification(sql, { skus, seed, signal: stopped.signal });
        if (args.values['json'] === true) print(shownJson(found));
        else for (const line of reportOf(found)) print(harmless(line));
        const [all] = found.shares;
        if (all === undefined || all.interval === null) return EXIT.failed;
        return all.holds ? EXIT.ok : EXIT.claim;
      });
    } finally {
      signal.dispose();
    }
  },
};

/** `seed` undefined: not given. */
function sampleOf({ values }: Arguments): { readonly skus: number; readonly seed: number | undefined } {
  const problems: string[] = [];
  const skus = numberOption(values, 'skus', SKUS, { min: 1, max: MAX_SKUS }, problems);
  const seed =
    values['seed'] === undefined
      ? undefined
      : numberOption(values, 'seed', 0, { min: 0, max: 2 ** 31 }, problems);
  if (problems.length > 0) throw new UsageError(problems);
  return { skus, seed };
}

interface Sample {
  readonly skus: number;
  readonly seed: number;
  /** Ends it early: what was answered by then is reported. */
  readonly signal: AbortSignal;
}

async function verification(sql: Sql, { skus, seed, signal }: Sample) {
  if ((await readDaemons(sql)).daemons === 0)
    throw Object.assign(new Error('no daemon is running on this mirror, so nothing would be asked'), {
      hint: 'start the daemon, then try again',
    });
  const paused = await pausedLine(sql);
  if (paused !== null)
    throw Object.assign(new Error(`${paused}, so nothing would be asked`), {
      hint: 'run `catalog-mirror resume`, then try again',
    });
  const sample = await drawSample(sql, { skus, seed });
  const { answered, ...asked } = await askAbout(sample.skus, {
    clock: systemClock,
    signal,
    mark: (some) => markForVerification(sql, some),
    read: (marked) => readVerified(sql, marked),
    tell: (line) => void process.stderr.write(`${line}\n`),
  });
  return verificationOf(answered, { seed, population: sample.population, ...asked });
}

/** That requests are paused, until when and by whom, as a line for people; null while they are not. */
async function pausedLine(sql: Sql): Promise<string | null> {
  const { pause, now } = await readPause(sql);
  const status = pauseStatus(pause, now);
  return status === null ? null : `requests to the partner are paused ${untilText(status)} (by ${status.by})`;
}
