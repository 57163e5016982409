import { validateHeaderName, validateHeaderValue } from 'node:http';

/**
 * Headers as OpenTelemetry writes them for one variable: `name=value` separated by commas, values percent-encoded
 * (W3C Baggage). Null where a part is no such pair, or could not be sent. Names are in lower case.
 */
export function parseHeaderPairs(text: string): Readonly<Record<string, string>> | null {
  const pairs = text
    .split(',')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '');
  const headers = new Map<string, string>();
  for (const pair of pairs) {
    const sign = pair.indexOf('=');
    const name = pair.slice(0, Math.max(0, sign)).trim().toLowerCase();
    try {
      const value = decodeURIComponent(pair.slice(sign + 1).trim());
      validateHeaderName(name);
      validateHeaderValue(name, value);
      headers.set(name, value);
    } catch {
      return null;
    }
  }
  return headers.size === 0 ? null : Object.fromEntries(headers);
}
