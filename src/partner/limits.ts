import { setImmediate } from 'node:timers/promises';
import type { Endpoint } from './endpoints.ts';

/** Largest `integer` of Postgres, the type in which the partner's numbers are stored. */
export const INT4_MAX = 2_147_483_647;

/** The largest answer that is read. */
export interface AnswerLimits {
  /** Both before and after decompression. */
  readonly bytes: number;
  /** Elements and members on all levels. */
  readonly values: number;
  /** Member names, objects and arrays: they take the most time to parse, and the most memory. */
  readonly structure: number;
  /** Levels of nesting. */
  readonly depth: number;
}

const MIB = 1024 * 1024;
/** A record nested deeper than text.ts allows spoils no other; a body nested much deeper overflows stacks. */
const DEPTH = 500;

/** Limits of every answer other than a 200, of which only the code is read. */
export const REFUSAL_LIMITS: AnswerLimits = { bytes: MIB, values: 10_000, structure: 10_000, depth: DEPTH };

const SMALL: AnswerLimits = { bytes: MIB, values: 20_000, structure: 20_000, depth: DEPTH };

/**
 * Returns the limits of a route. They allow many times what the partner sends, but no text that would take a
 * hundred times its size in memory: a process of 256 MB can read any answer. `skus` is the number of SKUs in the
 * answer.
 */
export function limitsOf(route: Endpoint, skus = 1): AnswerLimits {
  switch (route) {
    case 'manifest':
    case 'lowest':
      return SMALL;
    case 'bulk':
      return {
        bytes: MIB + skus * 40 * 1024,
        values: 20_000 + skus * 1000,
        structure: 20_000 + skus * 1000,
        depth: DEPTH,
      };
    // A million SKUs. A larger change is a new catalog, which comes as a manifest.
    case 'delta':
      return { bytes: 24 * MIB, values: 1_100_000, structure: 250_000, depth: DEPTH };
  }
}

/** Characters between two yields to the event loop. */
const PIECE = 2 * MIB;

/**
 * Returns which limit a JSON text exceeds, or null if it may be parsed. Counts brackets, commas and colons outside
 * of strings before anything is parsed, because a value of two characters can take a hundred bytes once parsed.
 * Does not detect text that is not JSON.
 */
export async function excessOf(
  text: string,
  { values, structure, depth }: Omit<AnswerLimits, 'bytes'>,
): Promise<'values' | 'structure' | 'nesting' | null> {
  let [count, parts, level, inString] = [1, 0, 0, false];
  for (let at = 0; at < text.length;) {
    const end = Math.min(text.length, at + PIECE);
    for (; at < end; at += 1) {
      const char = text.charCodeAt(at);
      if (inString) {
        if (char === BACKSLASH) at += 1;
        else if (char === QUOTE) inString = false;
      } else if (char === QUOTE) inString = true;
      else if (char === COMMA) count += 1;
      else if (char === COLON) parts += 1;
      else if (char === OPEN_ARRAY || char === OPEN_OBJECT) {
        count += 1;
        parts += 1;
        level += 1;
        if (level > depth) return 'nesting';
      } else if (char === CLOSE_ARRAY || char === CLOSE_OBJECT) level -= 1;
    }
    if (count > values) return 'values';
    if (parts > structure) return 'structure';
    if (at < text.length) await setImmediate();
  }
  return null;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
