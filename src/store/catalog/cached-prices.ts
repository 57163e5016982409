/**
 * The longest that an answer may have been kept on its way by what the partner declares of single prices: 300 seconds
 * by the client (max-age), after 600 (s-maxage) and 120 more (stale-while-revalidate) in a shared cache. Bulk answers
 * are not cached (partner rule 4.1.5), but what they are made of may be.
 */
export const LONGEST_CACHED_SECONDS = 300 + 600 + 120;
