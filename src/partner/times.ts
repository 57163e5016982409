/** A time of day without a zone, as Date.parse would take it for one of this machine's. */
const ZONELESS = /\d[T ]\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?$/;

/** Nothing of the partner's is older: a zero in place of a time says that there is none. */
const EARLIEST = Date.UTC(2010, 0);

/**
 * A time as ISO text, in UTC where it names no zone (partner rules 2.6), or as epoch seconds or milliseconds; null
 * where it is none of these.
 */
export function readTime(value: unknown): Date | null {
  if (typeof value !== 'string' && typeof value !== 'number') return null;
  const text = typeof value === 'string' && ZONELESS.test(value) ? `${value}Z` : value;
  const date = new Date(typeof text === 'number' && text < 100_000_000_000 ? text * 1000 : text);
  return date.getTime() >= EARLIEST ? date : null;
}
