import { randomBytes } from 'node:crypto';

/** Secret text that must not leak, found by its core: letters and digits, which no escaping changes. */
export interface Canary {
  readonly name: string;
  readonly core: string;
}

/** Returns a canary that is only its core; `around` puts it into a value that needs escaping everywhere. */
export function canary(name: string): Canary & { around(before: string, after: string): string } {
  const core = `cnry${randomBytes(12).toString('hex')}`;
  return { name, core, around: (before, after) => `${before}${core}${after}` };
}

/**
 * Returns the part of a text's base64 that does not depend on its surroundings, for each of the three possible
 * offsets.
 */
function base64Parts(text: string): string[] {
  return [0, 1, 2].map((offset) => {
    const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(text)]);
    const whole = bytes.subarray(0, bytes.length - (bytes.length % 3)).toString('base64');
    return offset === 0 ? whole : whole.slice(4);
  });
}

/** Returns each form in which a canary may turn up: cut in two, in base64 and in hexadecimal. */
function formsOf({ core }: Canary): Readonly<Record<string, string>> {
  const half = Math.floor(core.length / 2);
  const hex = Buffer.from(core).toString('hex');
  const [base64, shifted, shiftedTwice] = base64Parts(core);
  return {
    'first half': core.slice(0, half),
    'second half': core.slice(half),
    base64: base64 ?? '',
    'base64, shifted by one': shifted ?? '',
    'base64, shifted by two': shiftedTwice ?? '',
    hex: hex.slice(0, 24),
    'hex in capitals': hex.slice(0, 24).toUpperCase(),
  };
}

/** Searches the places for every canary and returns one line for each finding. */
export function findings(
  places: Readonly<Record<string, string>>,
  canaries: readonly Canary[],
): readonly string[] {
  return Object.entries(places).flatMap(([place, text]) =>
    canaries.flatMap((one) =>
      Object.entries(formsOf(one)).flatMap(([form, needle]) => {
        const at = text.indexOf(needle);
        return at < 0
          ? []
          : [`${one.name} (${form}) in ${place}: …${text.slice(Math.max(0, at - 80), at + 40)}…`];
      }),
    ),
  );
}
