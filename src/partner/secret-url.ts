import { inspect } from 'node:util';

/**
 * A presigned URL, which is a credential to whoever holds it (specification 8, Cache-Control of the manifest route).
 * Printing, serialising or inspecting it shows the host alone; `reveal` gives the URL to the one place that requests it.
 */
export class SecretUrl {
  readonly #url: URL;

  constructor(url: URL) {
    this.#url = url;
  }

  reveal(): URL {
    return new URL(this.#url);
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
