/**
 * What a span tells: names of OpenTelemetry's conventions, or of ours (`catalog_mirror.…`). What is undefined is left
 * out.
 */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** A piece of work while it goes on. */
export interface Span {
  set(attributes: Attributes): void;
  /** It did not work; `kind` is the error's kind or code, never its message, which may hold anything. */
  fail(kind: string): void;
}

export interface SpanOptions {
  /** `client`: a request to somebody else. `producer`: a message to whoever listens. */
  readonly kind?: 'client' | 'producer';
  /** A trace of its own that began at this time (monotonic); it links to the span that it was begun within. */
  readonly traceFrom?: number;
  /** Links to spans that were remembered by these keys. */
  readonly links?: readonly string[];
}

/**
 * Notes what work belongs together and how long each part takes, passed in wherever that is of interest, as clocks are.
 */
export interface Tracer {
  /**
   * Runs `work` at once, in a span within the present one. What it throws is passed on and makes the span a failed one.
   */
  span<T>(
    name: string,
    attributes: Attributes,
    work: (span: Span) => Promise<T>,
    options?: SpanOptions,
  ): Promise<T>;
  /** A span within the present one that is over: `from` and `to` are times of the monotonic clock. */
  past(name: string, attributes: Attributes, from: number, to: number, kind?: SpanOptions['kind']): void;
  /** Later spans may link to the present one by these keys; of keys, the last few hundred are known. */
  remember(keys: readonly string[]): void;
}

const NO_SPAN: Span = { set() {}, fail() {} };

/** Traces nothing. */
export const NO_TRACER: Tracer = {
  span: (_name, _attributes, work) => work(NO_SPAN),
  past() {},
  remember() {},
};
