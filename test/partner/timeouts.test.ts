import { expect, test } from 'vitest';
import { PartnerError } from '../../src/partner/errors.ts';
import { all, fileAt, lineText } from './manifest-reading.ts';
import { clientOf, permit } from './plain-client.ts';
import { serve } from './server.ts';

const ENDLESS = { timeout: 20_000 };
/** The daemon's signal, which would abort at a shutdown. In these tests it never does. */
const running = () => new AbortController().signal;

const ended = (promise: Promise<unknown>) =>
  promise.then(
    () => 'answered',
    (error: unknown) => (error instanceof PartnerError ? error.kind : error),
  );

test('a download takes at most PARTNER_DOWNLOAD_TIMEOUT while the daemon runs', ENDLESS, async () => {
  const base = await serve((_request, response) => {
    response.write(`${lineText(1)}\n`);
  });
  expect(await ended(all(fileAt(base, { timeoutMs: 200, signal: running() })))).toBe('timeout');
});

test('a download ends at once when the daemon stops', ENDLESS, async () => {
  const base = await serve((_request, response) => {
    response.write(`${lineText(1)}\n`);
  });
  const stopping = new AbortController();
  const download = ended(all(fileAt(base, { timeoutMs: 60_000, signal: stopping.signal })));
  stopping.abort();
  expect(await download).toBe('aborted');
});

test('a request takes at most PARTNER_TIMEOUT while the daemon runs', ENDLESS, async () => {
  const client = clientOf(await serve(() => undefined), { timeoutMs: 100 });
  expect(await ended(client.bulk(permit, ['A'], running()))).toBe('timeout');
  expect(await ended(client.delta(permit, 's1', running()))).toBe('timeout');
  expect(await ended(client.manifest(permit, running()))).toBe('timeout');
});
