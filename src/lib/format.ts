/* Numbers as people read them, wherever the program writes them. */

/** A number with its thousands apart: 12345 → `12,345`. */
export const count = (n: number): string => n.toLocaleString('en-US');

/** A share of 0 to 1 in percent, rounded: 0.123 → `12.3 %`. */
export const percent = (share: number, digits = 1): string => `${(100 * share).toFixed(digits)} %`;
