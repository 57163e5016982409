import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { POLICY } from '../../src/status/page-assets.ts';
import { type PageView, renderPage } from '../../src/status/page.ts';

export interface PageServer extends AsyncDisposable {
  urlOf(name: string): string;
}

/** Serves status pages by name, with the policy that the daemon sends. Calls `view` for each request. */
export async function servePages(view: (name: string) => PageView): Promise<PageServer> {
  const server = createServer((request, response) => {
    const name = decodeURIComponent((request.url ?? '/').slice(1));
    response.writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': POLICY,
    });
    response.end(renderPage(view(name)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    urlOf: (name) => `http://127.0.0.1:${port}/${encodeURIComponent(name)}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
