import type { IncomingMessage, ServerResponse } from 'node:http';
import { shownJson } from '../../lib/json.ts';

/** How the daemon is: `ok` decides between 200 and 503, all of it is the JSON body. */
export interface HealthAnswer {
  readonly ok: boolean;
  readonly [detail: string]: unknown;
}

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

/** An answer that is one line of JSON. */
export const json = (status: number, body: object, headers: Answer['headers'] = {}): Answer => ({
  status,
  type: 'application/json; charset=utf-8',
  body: `${shownJson(body)}\n`,
  headers,
});

export const unavailable = (reason: string): Answer => json(503, { ok: false, reason });
export const healthAnswer = (health: HealthAnswer): Answer => json(health.ok ? 200 : 503, health);
/** The answer without its reasons, for readers who may not see them. */
export const brief = ({ status }: Answer): Answer => json(status, { ok: status === 200 });

/** What a browser may do with any answer: show it by itself, and nothing else. A page has a policy of its own. */
const FOR_BROWSERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** Sends the whole answer; to HEAD only its headers. */
export function send(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  // A request body is of no use here: it is not read, so its connection is not used again.
  const hasBody =
    request.headers['transfer-encoding'] !== undefined || (request.headers['content-length'] ?? '0') !== '0';
  response.writeHead(answer.status, {
    'content-type': answer.type,
    'content-length': Buffer.byteLength(answer.body),
    ...FOR_BROWSERS,
    ...(hasBody && { connection: 'close' }),
    ...(answer.headers as Record<string, string | string[]> | undefined),
  });
  response.end(answer.body);
}
