import type { Json } from './wire.ts';

export interface Call {
  /** The path's parameters, percent-encoding undone. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly text: string;
}

/** A handler's answer, with what the request record tells about it. */
export interface Answer {
  status: number;
  body: object;
  skus?: string[];
  liveComputed?: number;
}

/** A validation failure (partner rules 7.2): the body repeats the status. */
export function invalid(message: string): Answer {
  return refused(400, message);
}

/** HTTP 400 whose body names another status: 403 where an order is not the caller's (partner rule 7.4.2). */
export function refused(statusCode: number, message: string): Answer {
  return { status: 400, body: { statusCode, message } };
}

/** The JSON object of a body, or what is wrong with it. */
export function readObject(text: string): Json | string {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return 'body must be valid JSON';
  }
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
  return isObject ? (body as Json) : 'body must be a JSON object';
}
