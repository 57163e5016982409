import { setImmediate } from 'node:timers/promises';
import type { Endpoint } from './endpoints.ts';

/** Numbers of the partner are stored as `integer`. */
export const INT4_MAX = 2_147_483_647;

/** What an answer may have. */
export interface AnswerLimits {
  /** Before and after decompression. */
  readonly bytes: number;
  /** Elements and members on all levels. */
  readonly values: number;
  /** Names of members, objects and arrays: what takes long to parse, and much memory. */
  readonly structure: number;
  /** Levels of nesting. */
  readonly depth: number;
}

const MIB = 1024 * 1024;
/** A record nested deeper than is kept (text.ts) spoils no other; a text nested much deeper overflows stacks. */
const DEPTH = 500;

/** Of everything that is not 200. It is read for its code alone. */
export const REFUSAL_LIMITS: AnswerLimits = { bytes: MIB, values: 10_000, structure: 10_000, depth: DEPTH };

const SMALL: AnswerLimits = { bytes: MIB, values: 20_000, structure: 20_000, depth: DEPTH };

/**
 * Limits of a route. They leave room for many times what the partner sends, and none for a text that makes a hundred
 * times its size of memory: a process of 256 MB reads any answer. `skus`: of how many SKUs the answer is.
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
    // A million SKUs: what is more is a new catalog, and comes as a manifest.
    case 'delta':
      return { bytes: 24 * MIB, values: 1_100_000, structure: 250_000, depth: DEPTH };
  }
}

/** Between two pieces of a text others have their turn. */
const PIECE = 2 * MIB;

/**
 * Which limit a JSON text exceeds, by its brackets, commas and colons outside of strings; null where it may be
 * parsed. Before anything is parsed, because a value of two characters takes a hundred bytes. A text that is no JSON
 * may come through.
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
