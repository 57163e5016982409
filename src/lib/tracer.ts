/**
 * Attributes of a span, with names of OpenTelemetry's conventions or our own (`catalog_mirror.…`). Undefined ones are
 * left out.
 */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** A piece of work in progress. */
export interface Span {
  set(attributes: Attributes): void;
  /** Marks the work as failed. `kind` is the error's kind or code, never its message, which may contain anything. */
  fail(kind: string): void;
}

export interface SpanOptions {
  /** `client`: a request to somebody else. `producer`: a message to whoever listens. */
  readonly kind?: 'client' | 'producer';
  /** Starts a trace of its own that began at this time (monotonic) and links to the surrounding span. */
  readonly traceFrom?: number;
  /** Links to the spans that were remembered by these keys. */
  readonly links?: readonly string[];
}

/** Records which work belongs together and how long each part takes. Passed in where needed, like a clock. */
export interface Tracer {
  /**
   * Runs `work` at once, in a span within the current one. An error from it is rethrown and marks the span as failed.
   */
  span<T>(
    name: string,
    attributes: Attributes,
    work: (span: Span) => Promise<T>,
    options?: SpanOptions,
  ): Promise<T>;
  /** Adds a finished span within the current one; `from` and `to` are times of the monotonic clock. */
  past(name: string, attributes: Attributes, from: number, to: number, kind?: SpanOptions['kind']): void;
  /** Lets later spans link to the current one by these keys. The last few hundred keys are known. */
  remember(keys: readonly string[]): void;
}

const NO_SPAN: Span = { set() {}, fail() {} };

/** Traces nothing. */
export const NO_TRACER: Tracer = {
  span: (_name, _attributes, work) => work(NO_SPAN),
  past() {},
  remember() {},
};
