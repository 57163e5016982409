import { createReadStream } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A manifest that is offered. */
export interface Offer {
  readonly snapshotId: string;
  readonly generatedAt: Date;
  readonly lines: number;
  /** The gzipped NDJSON. */
  readonly gzip: string;
}

/** The manifest route and the files behind it, on loopback: offers what it was last told to. */
export async function startUpstream() {
  let offered: Offer | undefined;
  const server = createServer((request, response) => {
    if (offered === undefined) return void response.writeHead(404).end();
    const { snapshotId, generatedAt, lines, gzip } = offered;
    if (request.url === '/file')
      return void createReadStream(gzip, { highWaterMark: 256 * 1024 }).pipe(response);
    const url = `http://${request.headers.host}/file`;
    const meta = { snapshot_id: snapshotId, generated_at: generatedAt, sku_count: lines, url };
    response.setHeader('content-type', 'application/json').end(JSON.stringify(meta));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    offer: (next: Offer) => {
      offered = next;
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

export type Upstream = Awaited<ReturnType<typeof startUpstream>>;
