import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startSandbox } from '../../src/sandbox/index.ts';

/* The partner and the collector, in a process of their own. In: how many SKUs. Tells its parent where they are. */

export interface Others {
  readonly url: string;
  readonly apiKey: string;
  readonly secret: string;
  readonly collector: string;
}

const sandbox = await startSandbox({
  skus: Number(process.argv[2]),
  liveShare: 0.05,
  rateLimit: 1_000_000,
  orders: 0,
  listings: 0,
  foreignOrders: 0,
});
// It reads what comes, and keeps nothing.
const collector = createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(200).end());
});
await new Promise<void>((resolve) => void collector.listen(0, '127.0.0.1', resolve));
const { port } = collector.address() as AddressInfo;
process.send?.({
  url: sandbox.url,
  apiKey: sandbox.apiKey,
  secret: sandbox.secret,
  collector: `http://127.0.0.1:${port}/v1/traces`,
} satisfies Others);
process.once('disconnect', () => process.exit());
