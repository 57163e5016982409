import type { Clock } from '../../lib/clock.ts';
import { formatAge, formatDuration } from '../../lib/duration.ts';
import type { MarkedSkus, readVerified } from '../../store/trust/verification.ts';
import { type Verified, verified } from './figures.ts';

/** So many are marked at a time: urgent ones that the delta reports meanwhile wait for no more than these. */
const AT_ONCE = 100;
const POLL_MS = 500;
/** Without an answer for so long, the SKUs that are left are not waited for. */
const PATIENCE_MS = 120_000;

export interface Asking {
  readonly clock: Clock;
  /** Ends it early. */
  readonly signal: AbortSignal;
  readonly mark: (skus: readonly string[]) => Promise<MarkedSkus>;
  readonly read: (marked: MarkedSkus) => ReturnType<typeof readVerified>;
  /** Takes a line about how far it is. */
  readonly tell: (line: string) => void;
}

export interface AskedSample {
  readonly answered: readonly Verified[];
  /** SKUs that were marked, answered or not. */
  readonly asked: number;
  readonly seconds: number;
}

/**
 * Has SKUs asked about, some at a time, and waits for the answers. Those that the partner defers or that fail are not
 * waited for. Once nothing is answered for two minutes, it ends: the others of the sample are not marked.
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

/** `isSilent`: SKUs were left that nobody answered, deferred or failed for too long. */
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
