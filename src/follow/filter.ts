import type { Filter } from '../store/history/feed.ts';

export const KINDS = ['price', 'product', 'sku'] as const;

const EXPECTED = `--filter: expected watchlist, brand=…, sku=… or kind=${KINDS.join('|')}`;

/**
 * Parses the values of `--filter`. Values with the same name are alternatives; different names must match together.
 * Adds unreadable ones to `problems`. Pure.
 */
export function parseFilters(texts: readonly string[], problems: string[]): Filter {
  const kinds: string[] = [];
  const brands: string[] = [];
  const skus: string[] = [];
  let watchlist = false;
  for (const text of texts) {
    const [, name = text, value = ''] = /^([a-z]+)=(.*)$/s.exec(text) ?? [];
    if (text === 'watchlist') watchlist = true;
    else if (name === 'brand' && value.trim() !== '') brands.push(value);
    else if (name === 'sku' && value !== '') skus.push(value);
    else if (name === 'kind' && KINDS.some((kind) => kind === value)) kinds.push(value);
    else problems.push(`${EXPECTED}, got ${JSON.stringify(text)}`);
  }
  const listed = (values: readonly string[]) => (values.length === 0 ? null : values);
  return { kinds: listed(kinds), brands: listed(brands), skus: listed(skus), watchlist };
}
