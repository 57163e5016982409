/* Numbers as people read them, wherever the program writes them. */

/** A number with its thousands apart: 12345 → `12,345`. */
export const count = (n: number): string => n.toLocaleString('en-US');

/** The noun that goes with a count: plural(1, 'SKU') → `SKU`, plural(2, 'SKU') → `SKUs`. */
export const plural = (n: number, one: string, many = `${one}s`): string => (n === 1 ? one : many);

/** A share of 0 to 1 in percent, rounded: 0.123 → `12.3 %`. */
export const percent = (share: number, digits = 1): string => `${(100 * share).toFixed(digits)} %`;
