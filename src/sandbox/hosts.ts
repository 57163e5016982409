import { isIPv4, isIPv6 } from 'node:net';

const NAME = /^[a-z0-9](?:[a-z0-9_.-]{0,251}[a-z0-9])?\.?$/i;

/** Name and port of a Host header; null for what is none. */
function parseHost(header: string | undefined): { name: string; port: string } | null {
  const [, name = '', port = ''] = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::(\d{1,5}))?$/i.exec(header ?? '') ?? [];
  const isName = name.startsWith('[') ? isIPv6(name.slice(1, -1)) : NAME.test(name);
  return isName && Number(port) <= 65_535 ? { name, port } : null;
}

/**
 * The address by which a request reached the sandbox, as its Host header has it; null where that is missing or no
 * address.
 */
export function baseOf(host: string | undefined): string | null {
  return parseHost(host) === null ? null : `http://${host}`;
}

/** Whether a Host header names this machine by what no name server answers: a page of another site cannot have that. */
export function isLoopbackHost(header: string | undefined): boolean {
  const name = parseHost(header)?.name.toLowerCase().replace(/\.$/, '');
  return name === 'localhost' || name === '[::1]' || isLoopbackAddress(name);
}

/** Whether a connection's other end is this machine. */
export function isLoopbackAddress(address: string | undefined): boolean {
  const plain = address?.replace(/^::ffff:/i, '') ?? '';
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'));
}

/** The address of a server that listens there, for clients on the same machine. */
export function urlOf(listensOn: string, port: number): string {
  const host = listensOn === '0.0.0.0' ? '127.0.0.1' : listensOn === '::' ? '::1' : listensOn;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
