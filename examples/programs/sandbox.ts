import { startSandbox } from 'catalog-mirror/sandbox';

await using sandbox = await startSandbox({ now: new Date('2026-01-01T00:00:00Z'), seed: 7, skus: 50 });
await sandbox.control.setSku('MY-0001', { sizes: { '9': 4800, '10': null }, size_type: 'US' });
await sandbox.control.snapshot();
await sandbox.control.advance(60_000);

const credential = Buffer.from(`${sandbox.apiKey}:${sandbox.secret}`).toString('base64');
const answer = await fetch(`${sandbox.url}/partner/lowest/MY-0001`, {
  headers: { Authorization: `Basic ${credential}` },
});
console.log(answer.status, JSON.stringify(await answer.json()));
