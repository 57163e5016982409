import { type HttpServer, type HttpServerOptions, startHttpServer } from '../../src/daemon/http-server.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';

const servers: HttpServer[] = [];

/** Starts a server in this process; its page of prices contains a SKU. `logged` returns its log lines so far. */
export async function startTestServer(options: Partial<HttpServerOptions> = {}) {
  const lines: string[] = [];
  const prices = async () => ({ type: 'application/json', body: '{"sku":"DD1391-100"}\n', headers: {} });
  const server = await startHttpServer({
    host: '127.0.0.1',
    port: 0,
    metrics: async () => 'up 1\n',
    live: () => ({ ok: true }),
    ready: async () => ({ ok: true, degraded: [] }),
    pages: new Map([
      ['/', prices],
      ['/status.json', prices],
    ]),
    log: createLogger({
      level: 'info',
      secrets: () => [],
      destination: { write: (line: string) => lines.push(line) },
    }),
    clock: systemClock,
    ...options,
  });
  servers.push(server);
  const logged = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  return { server, logged };
}

/** Closes all servers; for afterEach. */
export async function stopTestServers(): Promise<void> {
  await Promise.all(servers.splice(0).map((server) => server.close()));
}
