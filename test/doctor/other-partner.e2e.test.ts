import { expect, test } from 'vitest';
import { noteAccount } from '../../src/store/setup/account.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { runProgram } from '../support/process.ts';
import { createStack } from '../support/stack.ts';

interface Said {
  readonly checks: readonly { readonly check: string; readonly level: string; readonly text: string }[];
  readonly requests: { readonly sent: readonly unknown[] };
}

const saidBy = ({ stdout }: { readonly stdout: string }) => JSON.parse(stdout) as Said;

/** Returns the URL of the stack's own sandbox by another host name: to the mirror, a different partner. */
const elsewhere = (url: string | undefined) => String(url).replace('127.0.0.1', 'localhost');

test("a partner other than the mirror's is not asked, so what it rejects pauses nobody", async () => {
  await using stack = await createStack({ backend: 'postgres', sandbox: { skus: 20, seed: 77 } });
  await stack.start();
  await stack.caughtUp();
  const env = {
    ...stack.env,
    PARTNER_BASE_URL: elsewhere(stack.env['PARTNER_BASE_URL']),
    PARTNER_SECRET: 'that-of-another',
  };
  const { code, stdout } = await runProgram(['doctor', '--json'], env);
  const { checks, requests } = saidBy({ stdout });
  const [{ refusals }] = await stack.sql<[{ refusals: number }]>`
    select refusals::int as refusals from catalog.sync_status`;
  expect({ code, refusals, sent: requests.sent }).toEqual({ code: 1, refusals: 0, sent: [] });
  expect(checks.filter(({ level }) => level === 'FAIL').map(({ check }) => check)).toEqual(['account']);
  expect(checks.find(({ check }) => check === 'partner')?.text).toMatch(/^skipped: .*another partner/);
});

test('an address misspelt at the first start does no harm if nothing was stored', async () => {
  await using stack = await createStack({ backend: 'postgres', sandbox: { skus: 20, seed: 78 } });
  await migrateDatabase(String(stack.env['DATABASE_URL']));
  await noteAccount(stack.sql, { baseUrl: 'https://partnr.example', apiKey: 'ours' });
  const { code, stdout } = await runProgram(['doctor', '--json'], stack.env);
  const { checks } = saidBy({ stdout });
  expect({ code, account: checks.find(({ check }) => check === 'account') }).toMatchObject({
    code: 0,
    account: { level: 'OK', text: 'none is mirrored yet' },
  });
});
