/** A small seeded generator: the same seed gives the same world on every machine. */
export interface Rng {
  /** A number in [0, 1). */
  next(): number;
  /** A whole number in [0, bound). */
  int(bound: number): number;
  chance(probability: number): boolean;
  pick<T>(list: readonly [T, ...T[]]): T;
}

/** Creates a mulberry32 generator; `seed` is truncated to 32 bits. */
export function createRng(seed: number): Rng {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let word = Math.imul(state ^ (state >>> 15), state | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return ((word ^ (word >>> 14)) >>> 0) / 4_294_967_296;
  };
  const int = (bound: number): number => Math.floor(next() * bound);
  return {
    next,
    int,
    chance: (probability) => next() < probability,
    pick: (list) => list[int(list.length)] ?? list[0],
  };
}

/** Mixes two numbers into one unsigned 32-bit number; similar inputs give unrelated outputs. */
export function mix(left: number, right: number): number {
  let word = Math.imul(left ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(right + 0x165667b1, 0xc2b2ae35);
  word = Math.imul(word ^ (word >>> 16), 0x7feb352d);
  word = Math.imul(word ^ (word >>> 15), 0x846ca68b);
  return (word ^ (word >>> 16)) >>> 0;
}

/** Returns sixteen hex digits that depend on every character of every part, but not on the order of the parts. */
export function fingerprint(parts: Iterable<string>): string {
  let high = 0;
  let low = 0;
  for (const part of parts) {
    let word = 0xdeadbeef;
    for (let index = 0; index < part.length; index += 1) {
      word = mix(word, part.charCodeAt(index));
    }
    high += mix(word, 1);
    low += mix(word, 2);
  }
  return hex(mix(high, low)) + hex(mix(low, high));
}

function hex(word: number): string {
  return word.toString(16).padStart(8, '0');
}
