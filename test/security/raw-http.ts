import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Everything that came back on a connection. `over`: the server has ended or reset it in time. */
export interface Heard {
  readonly text: string;
  readonly over: boolean;
}

/** Opens a connection. Its errors are ignored: they only end it. */
export async function dial(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
  socket.on('error', () => {});
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  return socket;
}

/** Writes the pieces one after the other, ends its own side if `ends`, and listens until the server has ended too. */
export async function exchange(
  port: number,
  pieces: readonly Buffer[],
  { ends = true, patienceMs = 4000 } = {},
): Promise<Heard> {
  const socket = await dial(port);
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  for (const piece of pieces) {
    if (socket.destroyed) break;
    await new Promise((written) => socket.write(piece, written));
  }
  if (ends) socket.end();
  const over = await endOf(socket, patienceMs);
  socket.destroy();
  return { text: Buffer.concat(chunks).toString('latin1'), over };
}

/** Returns whether the server ends or resets the connection within this time. */
export async function endOf(socket: Socket, patienceMs: number): Promise<boolean> {
  if (socket.destroyed || socket.readableEnded) return true;
  const over = new AbortController();
  const { signal } = over;
  const timer = setTimeout(() => over.abort(), patienceMs);
  socket.resume();
  try {
    await Promise.race([once(socket, 'end', { signal }), once(socket, 'close', { signal })]);
    return true;
  } catch {
    return socket.destroyed;
  } finally {
    clearTimeout(timer);
    over.abort();
  }
}

export interface Head {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
}

/** Parses the heads of the answers in order, without interim ones (1xx). Throws on anything else. */
export function headsOf(text: string): Head[] {
  const heads: Head[] = [];
  let rest = text;
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n');
    const [statusLine = '', ...lines] = rest.slice(0, end < 0 ? undefined : end).split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) [\w -]+$/.exec(statusLine)?.[1]);
    if (end < 0 || Number.isNaN(status)) throw new Error(`no answer: ${JSON.stringify(rest.slice(0, 80))}`);
    const headers = new Map(
      lines.map((line) => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    // A refusal by Node.js itself has no body, but ends with an empty chunk.
    if (headers.get('transfer-encoding') === 'chunked' && rest.startsWith('0\r\n\r\n', end + 4)) {
      rest = rest.slice(0, end + 4) + rest.slice(end + 9);
    }
    const length = Number(headers.get('content-length') ?? 0);
    rest = rest.slice(end + 4);
    // The answer to HEAD has a length but no body.
    if (!rest.startsWith('HTTP/1.1 ')) rest = rest.slice(length);
    if (status >= 200) heads.push({ status, headers });
  }
  return heads;
}
