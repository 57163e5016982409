import type { Hint, HintStream } from './hints.ts';
import { exponential, seeded } from './random.ts';
import type { World } from './worlds.ts';

/* Sources of hints. Times in minutes. */

/**
 * A source that hints at each move with a probability of `recall`, as it happens, and at SKUs drawn at random so
 * often that it is right with `precision`.
 */
export function informed(
  world: World,
  {
    source,
    recall,
    precision,
  }: { readonly source: string; readonly recall: number; readonly precision: number },
  seed: number,
): HintStream {
  const random = seeded(seed);
  const wrong = (1 - precision) / precision;
  const hints: Hint[] = [];
  for (let item = 0; item < world.size; item += 1)
    for (const { at } of world.movesOf(item)) {
      if (random() >= recall) continue;
      hints.push({ at, item, source });
      for (let left = wrong; left > 0; left -= 1)
        if (random() < left) hints.push({ at, item: Math.floor(random() * world.size), source });
    }
  return inOrder(hints);
}

/** A source that hints at SKUs drawn at random, so many a minute. */
export function junk(world: World, minutes: number, perMinute: number, seed: number): HintStream {
  const random = seeded(seed);
  const hints: Hint[] = [];
  for (let at = exponential(random, perMinute); at < minutes; at += exponential(random, perMinute))
    hints.push({ at, item: Math.floor(random() * world.size), source: 'junk' });
  return inOrder(hints);
}

/** A source that hints at every SKU every minute. */
export function flood(world: World): HintStream {
  let from = 0;
  return {
    *until(minute) {
      for (; from <= minute; from += 1)
        for (let item = 0; item < world.size; item += 1) yield { at: from, item, source: 'flood' };
    },
  };
}

/** Several sources together. */
export function together(streams: readonly HintStream[]): HintStream {
  return {
    *until(minute) {
      for (const stream of streams) yield* stream.until(minute);
    },
  };
}

function inOrder(hints: readonly Hint[]): HintStream {
  const sorted = hints.toSorted((a, b) => a.at - b.at);
  let next = 0;
  return {
    *until(minute) {
      for (let hint = sorted[next]; hint !== undefined && hint.at <= minute; hint = sorted[next]) {
        next += 1;
        yield hint;
      }
    },
  };
}
