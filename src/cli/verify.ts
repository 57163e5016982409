import { randomInt } from 'node:crypto';
import { loadConfig, processSources } from '../config/config.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import { formatAge, formatDuration } from '../lib/duration.ts';
import { shownJson } from '../lib/json.ts';
import { pauseStatus } from '../pace/pause.ts';
import { untilText } from '../status/pause.ts';
import { harmless } from '../status/style.ts';
import type { Sql } from '../store/connection/db.ts';
import { readPause } from '../store/sellers/pause.ts';
import { readDaemons } from '../store/setup/instance.ts';
import {
  drawSample,
  type MarkedSkus,
  markForVerification,
  readVerified,
} from '../store/trust/verification.ts';
import { type Arguments, type Command, EXIT, numberOption, problemsIn, UsageError } from './command.ts';
import { expectPrimary, withMirror } from './mirror.ts';
import { stopSignal } from './process.ts';
import { reportOf, verificationOf, type Verified, verified } from './verify-report.ts';

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

/** Reads the options; `seed` is undefined if it is not given. */
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
  /** Ends the run early; what was answered by then is reported. */
  readonly signal: AbortSignal;
}

async function verification(sql: Sql, { skus, seed, signal }: Sample) {
  if ((await readDaemons(sql)).daemons === 0) {
    await expectPrimary(sql);
    throw Object.assign(new Error('no daemon is running on this mirror, so nothing would be asked'), {
      hint: 'start the daemon, then try again',
    });
  }
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

/** Says that requests are paused, until when and by whom; null while they are not. */
async function pausedLine(sql: Sql): Promise<string | null> {
  const { pause, now } = await readPause(sql);
  const status = pauseStatus(pause, now);
  return status === null ? null : `requests to the partner are paused ${untilText(status)} (by ${status.by})`;
}

/** How many SKUs are marked at a time. Urgent SKUs that the delta reports meanwhile wait for no more than these. */
const AT_ONCE = 100;
const POLL_MS = 500;
/** After this long without an answer, the remaining SKUs are not waited for. */
const PATIENCE_MS = 120_000;

interface Asking {
  readonly clock: Clock;
  /** Ends the run early. */
  readonly signal: AbortSignal;
  readonly mark: (skus: readonly string[]) => Promise<MarkedSkus>;
  readonly read: (marked: MarkedSkus) => ReturnType<typeof readVerified>;
  /** Takes a line about the progress. */
  readonly tell: (line: string) => void;
}

interface AskedSample {
  readonly answered: readonly Verified[];
  /** SKUs that were marked, answered or not. */
  readonly asked: number;
  readonly seconds: number;
}

/**
 * Has SKUs refreshed, some at a time, and waits for the answers, but not for SKUs that the partner defers or that fail.
 * Once nothing is answered for two minutes it ends, and does not mark the rest of the sample.
 */
export async function askAbout(skus: readonly string[], asking: Asking): Promise<AskedSample> {
  const { clock, signal, mark, tell } = asking;
  const begun = clock.monotonic();
  const answered: Verified[] = [];
  let asked = 0;
  let isSilent = false;
  for (let from = 0; from < skus.length && !signal.aborted && !isSilent; from += AT_ONCE) {
    const marked = await mark(skus.slice(from, from + AT_ONCE));
    asked += marked.held.length;
    const piece = await answersTo(marked, asking);
    answered.push(...piece.answered);
    isSilent = piece.isSilent;
    const seconds = (clock.monotonic() - begun) / 1000;
    const left = (seconds * (skus.length - asked)) / Math.max(1, asked);
    if (isSilent)
      tell(`nothing was answered for ${formatDuration(PATIENCE_MS)}, so no others are asked about`);
    else if (asked < skus.length && !signal.aborted)
      tell(`${asked} of ${skus.length} SKUs asked about, ${formatAge(left)} left`);
  }
  return { answered, asked, seconds: Math.round((clock.monotonic() - begun) / 1000) };
}

/** Waits for the answers. `isSilent`: for too long, none of the remaining SKUs was answered, deferred or failed. */
async function answersTo(
  marked: MarkedSkus,
  { clock, signal, read }: Asking,
): Promise<{ readonly answered: readonly Verified[]; readonly isSilent: boolean }> {
  let [known, since] = [0, clock.monotonic()];
  for (;;) {
    const { answered, postponed } = await read(marked);
    if (answered.length > known) [known, since] = [answered.length, clock.monotonic()];
    const isDone = answered.length + postponed >= marked.held.length;
    const isSilent = !isDone && clock.monotonic() - since > PATIENCE_MS;
    if (isDone || isSilent || signal.aborted) {
      const of = new Map(answered.map((answer) => [answer.sku, answer]));
      const found = marked.held.flatMap((held) => {
        const answer = of.get(held.sku);
        return answer === undefined ? [] : [verified(held, marked.at, answer)];
      });
      return { answered: found, isSilent };
    }
    await clock.sleep(POLL_MS, signal);
  }
}
