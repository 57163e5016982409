import { expect, test } from 'vitest';
import { ConfigError } from '../../src/config/config.ts';
import { storeMuted } from '../../src/store/answer/members.ts';
import { SINGLE_ROWS } from '../../src/store/ledger/lost-rows.ts';
import {
  addressOf,
  adoptAccount,
  noteAccount,
  readAccount,
  refuseOtherAccount,
  refuseOtherPartner,
} from '../../src/store/setup/account.ts';
import { countDaemons, registerInstance } from '../../src/store/setup/instance.ts';
import { eventually } from '../support/eventually.ts';
import { answerAsked, found, knownSkus, ledger, mark, pricesOf, useStore } from './support.ts';

const store = useStore();
const OURS = { baseUrl: 'https://partner.example/v1', apiKey: 'key-of-ours' };
const OTHER = { baseUrl: 'https://staging.partner.example/v1', apiKey: 'key-of-ours' };

/** A mirror of OURS with a token, a baseline, prices, a rate, learned state and a refusal. */
async function mirrored(): Promise<void> {
  const { sql } = store;
  await noteAccount(sql, OURS);
  await knownSkus(sql, ['A', 'gone'], { hash: 'h' });
  await knownSkus(sql, ['L'], { priceSource: 'live' });
  await mark(sql, ['L'], 'live', true);
  await answerAsked(sql, found('A', { 9: 90 }), found('L', { 9: 90 }));
  await sql`update catalog.skus set state = 'removed' where sku = 'gone'`;
  await sql`insert into catalog_internal.due (sku, lane, reason, due_at) values ('gone', 5, 'metadata', 'infinity')`;
  await sql`
    update catalog_internal.sync set snapshot_id = 's1', manifest_applied_at = now(), snapshot_generated_at = now(),
      delta_checked_at = now()`;
  await sql`insert into catalog_internal.live_rates (sku, alpha, beta) values ('A', 1, 1)`;
  await sql`update catalog_internal.beliefs set move_rate = 0.5`;
  await sql`insert into catalog_internal.calibration_hours values (now(), 'live', 0, 1, 1, 1, 1, 0)`;
  await sql`insert into catalog_internal.random_looks values ('L', now())`;
  await sql`insert into catalog_internal.pace (ceiling, raised_at, refusal) values (1, now(), 'unauthorised')`;
  await sql`update catalog_internal.tasks set failures = 3, next_at = now() + interval '1 hour'`;
}

test.each([
  ['https://partner.example', 'https://partner.example/'],
  ['https://Partner.Example:443/v1', 'https://partner.example/v1//'],
  ['http://127.0.0.1:4000/v1', 'http://127.0.0.1:5000/v1'],
])('%s and %s are the same partner', (one, same) => {
  expect(addressOf(one)).toBe(addressOf(same));
});

test.each([
  ['https://partner.example', 'https://staging.partner.example'],
  ['https://partner.example/v1', 'https://partner.example/v2'],
  ['https://partner.example', 'https://partner.example:8443'],
  ['http://10.0.0.1:4000', 'http://10.0.0.1:5000'],
])('%s and %s are two partners', (one, other) => {
  expect(addressOf(one)).not.toBe(addressOf(other));
});

test('the database contains neither the key nor a hash that two databases would share', async () => {
  const { sql } = store;
  await noteAccount(sql, OURS);
  const first = await readAccount(sql);
  expect(JSON.stringify(first)).not.toContain(OURS.apiKey);
  await sql`update catalog_internal.account set base_url = null, salt = null, key_hash = null`;
  await noteAccount(sql, OURS);
  expect((await readAccount(sql)).keyHash).not.toBe(first.keyHash);
});

test('before anything is mirrored, the next start may correct address and key', async () => {
  const { sql } = store;
  expect(await noteAccount(sql, OTHER)).toBe('known');
  expect(await noteAccount(sql, { ...OTHER, apiKey: 'corrected' })).toBe('known');
  expect(await noteAccount(sql, OURS)).toBe('known');
  expect(await readAccount(sql)).toMatchObject({ address: OURS.baseUrl, keyReplaced: false });
});

test('a start with another address is refused while another daemon of the mirror runs', async () => {
  const { sql, url } = store;
  const leaveFirst = await registerInstance(url);
  await noteAccount(sql, OURS);
  const leaveSecond = await registerInstance(url);
  await expect(noteAccount(sql, OTHER)).rejects.toThrow(ConfigError);
  expect(await readAccount(sql)).toMatchObject({ address: OURS.baseUrl });
  await leaveFirst();
  await eventually(async () => expect(await countDaemons(sql)).toBe(1));
  expect(await noteAccount(sql, OTHER)).toBe('known');
  await leaveSecond();
});

test.each(SINGLE_ROWS)(
  'a start that finds the row of %s missing gets as far as recreating it',
  async (table) => {
    const { sql } = store;
    await noteAccount(sql, OURS);
    await sql`delete from ${sql(`catalog_internal.${table}`)}`;
    await refuseOtherPartner(sql, OURS);
    await refuseOtherPartner(sql, OTHER);
  },
);

test('prices of another partner are refused even if the record of the baseline is gone', async () => {
  const { sql } = store;
  await mirrored();
  await sql`delete from catalog_internal.sync`;
  await refuseOtherPartner(sql, OURS);
  await expect(refuseOtherPartner(sql, OTHER)).rejects.toThrow(ConfigError);
});

test('at an address of this host, the key tells mirrors apart if the caller asks for that', async () => {
  const { sql } = store;
  const demo = { baseUrl: 'http://127.0.0.1:40001', apiKey: 'demo' };
  const others = { baseUrl: 'http://127.0.0.1:8443', apiKey: 'production' };
  await noteAccount(sql, others);
  await refuseOtherAccount(sql, demo);
  await sql`update catalog_internal.sync set manifest_applied_at = now()`;
  await refuseOtherPartner(sql, demo);
  await expect(refuseOtherAccount(sql, demo)).rejects.toThrow(ConfigError);
  await expect(refuseOtherAccount(sql, OTHER)).rejects.toThrow(ConfigError);
  await refuseOtherAccount(sql, { ...others, baseUrl: demo.baseUrl });
});

test('a mirror without a recorded account is taken for that of the first start, and then for no other', async () => {
  const { sql } = store;
  await sql`update catalog_internal.sync set manifest_applied_at = now()`;
  expect(await noteAccount(sql, OURS)).toBe('known');
  await expect(noteAccount(sql, OTHER)).rejects.toThrow(ConfigError);
  expect(await noteAccount(sql, { ...OURS, apiKey: 'another' })).toBe('key-replaced');
  expect(await noteAccount(sql, { ...OURS, apiKey: 'another' })).toBe('known');
});

test('an adopted account starts without anything learned: all is due, no price is trusted, histories stay', async () => {
  const { sql } = store;
  await mirrored();
  const trusted = async () => [
    ...(await sql`select sku from catalog.sku_trust where actionable order by sku`),
  ];
  expect(await trusted()).toEqual([{ sku: 'A' }, { sku: 'L' }]);
  await sql`insert into catalog_internal.left_tokens values ('m1', now())`;
  // At this partner the member moves with each refresh, so it is muted.
  await storeMuted(sql, { muted: [{ part: 'product', path: '["views"]' }], unmuted: [], renewed: [] });
  await adoptAccount(sql, OTHER);
  expect(await noteAccount(sql, OTHER)).toBe('known');
  const [sync] = await sql`select to_jsonb(s) as row from catalog_internal.sync s`;
  expect(sync?.['row']).toMatchObject({
    snapshot_id: null,
    manifest_applied_at: null,
    snapshot_generated_at: null,
    delta_checked_at: null,
    shrink_confirmed: true,
  });
  const [left] = await sql`
    select (select count(*)::int from catalog_internal.pace) as pace, (select count(*)::int from catalog_internal.pace_sends) as sends,
      (select count(*)::int from catalog_internal.live_rates) as rates,
      (select count(*)::int from catalog.calibration) as tests, (select count(*)::int from catalog_internal.random_looks) as drawn,
      (select count(*)::int from catalog_internal.left_tokens) as left,
      (select count(*)::int from catalog_internal.muted_members) as muted,
      (select move_rate < 0.5 from catalog_internal.beliefs) as unlearned,
      (select count(*)::int from catalog_internal.tasks where failures > 0 or next_at > now()) as waiting`;
  expect(left).toEqual({
    pace: 0,
    sends: 0,
    rates: 0,
    tests: 0,
    drawn: 0,
    left: 0,
    muted: 0,
    unlearned: true,
    waiting: 0,
  });
  const rows = await ledger(sql);
  expect(rows.get('A')).toMatchObject({ claim: null, heldFor: null, reason: 'sweep' });
  expect(rows.get('A')?.dueIn).toBeLessThanOrEqual(0);
  expect(rows.get('gone')?.dueIn).toBe(Infinity);
  const [sku] = await sql`select hash, asked_at from catalog.skus where sku = 'A'`;
  expect(sku).toEqual({ hash: null, asked_at: null });
  expect(await pricesOf(sql, 'A')).toEqual({ 9: 90 });
  expect(await trusted()).toEqual([]);
});
