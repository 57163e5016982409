/* Numbers as people read them, throughout the program. */

/** Formats a number with thousands separators: 12345 → `12,345`. */
export const count = (n: number): string => n.toLocaleString('en-US');

/** Returns the noun that fits a count: plural(1, 'SKU') → `SKU`, plural(2, 'SKU') → `SKUs`. */
export const plural = (n: number, one: string, many = `${one}s`): string => (n === 1 ? one : many);

/** Formats a share from 0 to 1 as a rounded percentage: 0.123 → `12.3 %`. */
export const percent = (share: number, digits = 1): string => `${(100 * share).toFixed(digits)} %`;
