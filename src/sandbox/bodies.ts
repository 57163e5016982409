import type { IncomingMessage } from 'node:http';

const MAX_BODY_BYTES = 1024 * 1024;

/** The request's body as text; null where it is larger than the sandbox takes. */
export async function readBody(request: IncomingMessage): Promise<string | null> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    size += (part as Buffer).length;
    if (size <= MAX_BODY_BYTES) parts.push(part as Buffer);
  }
  return size > MAX_BODY_BYTES ? null : Buffer.concat(parts).toString('utf8');
}
