import { inspect } from 'node:util';

/**
 * Shorter values of a query or header (a number, a version, a tenant) are no credentials: any text may contain
 * them.
 */
export const SHORTEST_SECRET = 8;

/**
 * A presigned URL, which is a bearer credential (partner rule 8.cache.manifest). Printing, serialising or
 * inspecting it shows only the host; `reveal` returns the URL to the one place that requests it.
 */
export class SecretUrl {
  readonly #url: URL;

  constructor(url: URL) {
    this.#url = url;
  }

  reveal(): URL {
    return new URL(this.#url);
  }

  /** Returns the text without this URL, its query, and each query value that is long enough to be a secret. */
  hideIn(text: string): string {
    return this.secrets().reduce((rest, secret) => rest.replaceAll(secret, '[secret]'), text);
  }

  /**
   * Returns the texts to hide, longest first. An answer may show a value as written in the URL, decoded, or
   * re-encoded.
   */
  secrets(): string[] {
    const { href, pathname, search, searchParams } = this.#url;
    const written = search
      .slice(1)
      .split('&')
      .map((pair) => pair.slice(pair.indexOf('=') + 1));
    const values = [...searchParams.values()].flatMap((value) => [value, encodeURIComponent(value)]);
    return [href, `${pathname}${search}`, search, ...written, ...values]
      .filter((text) => text.length >= SHORTEST_SECRET)
      .toSorted((a, b) => b.length - a.length);
  }

  toString(): string {
    return `[presigned url of ${this.#url.host}]`;
  }

  toJSON(): string {
    return this.toString();
  }

  [inspect.custom](): string {
    return this.toString();
  }
}
