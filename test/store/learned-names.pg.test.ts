import { beforeEach, describe, expect, test } from 'vitest';
import { readOwnMirror } from '../../src/cli/doctor/postgres-facts.ts';
import { keepNames } from '../../src/daemon/learned-names.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { EntryForms } from '../../src/partner/entry-forms.ts';
import { type EntryForm, formOf } from '../../src/partner/size-map.ts';
import { readLearnedNames } from '../../src/store/catalog/learned-names.ts';
import { noteBrokenChain } from '../../src/store/catalog/tokens.ts';
import { putClockRight } from '../../src/store/clock.ts';
import { adoptAccount, noteAccount } from '../../src/store/setup/account.ts';
import { setClockAhead } from '../support/movable-clock.ts';
import { baseline, line } from './manifest.ts';
import { useStore } from './support.ts';

const store = useStore({ movableClock: true });
const FIELDS = ['price', 'lowest_ask', 'amount'];
const HOUR = 3600;

interface Daemon {
  readonly forms: EntryForms;
  readonly read: () => Promise<void>;
  /** The form by which an answer with these entries was read, and the news about it. */
  readonly answered: (
    ...entries: unknown[]
  ) => Promise<{ readonly by: EntryForm | null; readonly news: unknown }>;
}

/** Returns a daemon that starts now, with a monotonic clock of its own. */
async function daemon(fields = FIELDS, clock = { now: 1e6 }): Promise<Daemon> {
  const names = keepNames(store.sql, { ...systemClock, monotonic: () => clock.now });
  await names.read();
  const forms = new EntryForms(fields, () => clock.now, names.formKeeper);
  return {
    forms,
    read: () => names.read(),
    async answered(...entries) {
      let by: EntryForm | null = null;
      const { answer, news } = await forms.read((held) => {
        const form = formOf(entries, fields, held);
        by = held ?? form;
        return { form };
      });
      return { by: by ?? answer.form, news: news?.kind ?? null };
    },
  };
}

const rows = async () =>
  Object.fromEntries(
    (
      await store.sql<{ name: string; value: string | null; answers: number; missing: boolean }[]>`
        select name, value, answers, missing_since is not null as missing from catalog_internal.learned_names`
    ).map(({ name, ...row }) => [name, row]),
  );

const held = (value: string | null) => ({ price: { value, answers: 3, missing: false } });

async function learn(from: { answered(entry: unknown): Promise<unknown> }, entry: unknown): Promise<void> {
  for (let n = 0; n < 3; n += 1) await from.answered(entry);
}

describe('the field in which entries have their price', () => {
  test.each([
    ['a field', { lowest_ask: 900 }, 'lowest_ask'],
    ['numbers without any', 900, null],
  ])('is read at a start: %s', async (_name, entry, value) => {
    await learn(await daemon(), entry);
    expect(await rows()).toEqual(held(value));
    const { forms } = await daemon();
    expect(forms.held).toEqual({ field: value });
  });

  test('is that of the daemon that learned it first; others learn it by reading, or at their next answer', async () => {
    const [one, two, three] = [await daemon(), await daemon(), await daemon()];
    await learn(one, { lowest_ask: 900 });
    expect(await two.answered({ price: 1290, lowest_ask: 900 })).toEqual({
      by: { field: 'lowest_ask' },
      news: null,
    });
    await three.read();
    expect(three.forms.held).toEqual({ field: 'lowest_ask' });
    expect(await rows()).toEqual(held('lowest_ask'));
  });

  test('is learned once by daemons whose answers arrive at the same time', async () => {
    const daemons = [await daemon(), await daemon(), await daemon()];
    await Promise.all(
      daemons.flatMap(({ answered }) => [900, 800, 700, 600].map((price) => answered({ lowest_ask: price }))),
    );
    for (const { forms, read } of daemons) {
      await read();
      expect(forms.held).toEqual({ field: 'lowest_ask' });
    }
    expect(await rows()).toEqual(held('lowest_ask'));
    expect((await readLearnedNames(store.sql)).price?.step).toBe(3);
  });

  test("is missing for an hour of Postgres's clock, whoever reads, and is dropped by one of them", async () => {
    const one = await daemon();
    await learn(one, { price: 900 });
    expect((await one.answered({ lowest_ask: 900 })).news).toBe('missing');
    expect(await rows()).toEqual({ price: { value: 'price', answers: 3, missing: true } });
    const [since] =
      await store.sql`select learned_at < missing_since as earlier from catalog_internal.learned_names`;
    expect(since).toEqual({ earlier: true });
    await setClockAhead(store.sql, HOUR - 60);
    expect((await (await daemon()).answered({ lowest_ask: 900 })).news).toBe('missing');
    await setClockAhead(store.sql, HOUR + 60);
    const [two, three] = [await daemon(), await daemon()];
    expect((await two.answered({ lowest_ask: 900 })).news).toBe('let-go');
    // It does not know that yet, and finds out.
    expect(await three.answered({ lowest_ask: 900 })).toEqual({ by: { field: 'lowest_ask' }, news: null });
    expect(await rows()).toEqual({ price: { value: 'lowest_ask', answers: 1, missing: false } });
  });

  test('is no longer missing for any of them once one has read it', async () => {
    const [one, two] = [await daemon(), await daemon()];
    await learn(one, { price: 900 });
    await one.answered({ lowest_ask: 900 });
    await two.read();
    await two.answered({ price: 900 });
    expect(await rows()).toEqual(held('price'));
  });

  test('is missing by the clock of the process while that runs, whatever the clock of Postgres does', async () => {
    const clock = { now: 0 };
    const one = await daemon(FIELDS, clock);
    await learn(one, { price: 900 });
    await one.answered({ lowest_ask: 900 });
    await setClockAhead(store.sql, 2 * HOUR);
    await one.read();
    expect((await one.answered({ lowest_ask: 900 })).news).toBe('missing');
    clock.now += HOUR * 1000;
    expect((await one.answered({ lowest_ask: 900 })).news).toBe('let-go');
  });

  test('is not changed by what a daemon read before it wrote', async () => {
    let arrives = () => {};
    const late = new Promise<void>((resolve) => {
      arrives = resolve;
    });
    // Its first statement is answered at once, but the answer arrives late.
    let isFirst = true;
    const sql = new Proxy(store.sql, {
      apply(target, self, given) {
        const sent = Reflect.apply(target, self, given) as Promise<unknown>;
        if (!isFirst) return sent;
        isFirst = false;
        return sent.then(async (rows) => (await late, rows));
      },
    });
    const names = keepNames(sql, systemClock);
    const forms = new EntryForms(FIELDS, () => systemClock.monotonic(), names.formKeeper);
    const reading = names.read();
    await learn(
      { answered: (entry) => forms.read((held) => ({ form: formOf([entry], FIELDS, held) })) },
      { price: 900 },
    );
    arrives();
    await reading;
    expect(forms.held).toEqual({ field: 'price' });
  });

  test('does not count if it is not configured, and gives way to one that is', async () => {
    await learn(await daemon(), { price: 1290, lowest_ask: 900 });
    const configured = await daemon(['lowest_ask']);
    await learn(configured, { price: 1290, lowest_ask: 900 });
    expect(await rows()).toEqual(held('lowest_ask'));
  });

  test('is stored with that of the records beside it, and dropped with it', async () => {
    const both = { form: { field: null }, also: { field: 'price' } };
    const one = await daemon();
    for (let n = 0; n < 2; n += 1) await one.forms.read(() => both);
    expect((await daemon()).forms.also).toBeNull();
    await (await daemon()).forms.read(() => both);
    expect(await rows()).toEqual({
      price: { value: null, answers: 3, missing: false },
      price_also: { value: 'price', answers: 3, missing: false },
    });
    expect((await daemon()).forms).toMatchObject({ held: { field: null }, also: { field: 'price' } });
    expect((await daemon(['amount'])).forms.also).toBeNull();
    await one.read();
    await one.answered({ amount: 900 });
    await setClockAhead(store.sql, HOUR + 60);
    expect((await (await daemon()).answered({ amount: 900 })).news).toBe('let-go');
    expect(Object.keys(await rows())).toEqual(['price']);
  });

  test('keeps, over restarts, the hour in which the records beside it have another form', async () => {
    const answered = (field: string) => async (by: Daemon) => {
      const { news } = await by.forms.read(() => ({ form: { field: null }, also: { field } }));
      return news?.kind ?? null;
    };
    const [price, ask] = [answered('price'), answered('lowest_ask')];
    for (let n = 0; n < 3; n += 1) await price(await daemon());
    expect(await ask(await daemon())).toBe('missing');
    expect((await rows())['price_also']).toEqual({ value: 'price', answers: 3, missing: true });
    await setClockAhead(store.sql, HOUR - 60);
    expect(await ask(await daemon())).toBe('missing');
    expect(await price(await daemon())).toBeNull();
    expect((await rows())['price_also']).toMatchObject({ missing: false });
    expect(await ask(await daemon())).toBe('missing');
    await setClockAhead(store.sql, HOUR + 60);
    expect(await ask(await daemon())).toBe('missing');
    await setClockAhead(store.sql, 2 * HOUR);
    expect(await ask(await daemon())).toBe('let-go');
    expect(await rows()).toEqual(held(null));
    for (let n = 0; n < 3; n += 1) await ask(await daemon());
    expect((await daemon()).forms.also).toEqual({ field: 'lowest_ask' });
  });

  test('is dropped an hour after it was last there, whatever else is learned meanwhile', async () => {
    const one = await daemon();
    await learn(one, { price: 900 });
    await one.answered({ amount: 900 });
    await setClockAhead(store.sql, HOUR / 2);
    const others = [{ name: 'currency', records: 20, isNumber: false, objects: 0, isSize: false }];
    await (await daemon()).forms.read(() => ({ form: { field: 'amount' }, others }));
    await setClockAhead(store.sql, HOUR + 60);
    expect((await (await daemon()).answered({ amount: 900 })).news).toBe('let-go');
  });

  test('is stored with the members that are no sizes, which outlive the form', async () => {
    const member = { name: 'currency', records: 20, isNumber: false, objects: 0, isSize: false };
    const one = await daemon();
    await one.forms.read(() => ({ form: { field: 'price' }, others: [member] }));
    await learn(one, { price: 900 });
    expect((await daemon()).forms.others).toEqual([member]);
    await one.answered({ amount: 900 });
    await setClockAhead(store.sql, HOUR + 60);
    const two = await daemon();
    expect((await two.answered({ amount: 900 })).news).toBe('let-go');
    expect((await daemon()).forms).toMatchObject({ held: null, others: [member] });
    await (await daemon()).forms.read(() => ({ others: [] }));
    expect((await daemon()).forms.others).toEqual([]);
    await store.sql`update catalog_internal.learned_names set value = '{"of":1}' where name = 'other_members'`;
    expect((await daemon()).forms.others).toEqual([]);
  });

  test('is learned anew if its row was deleted', async () => {
    const one = await daemon();
    await learn(one, { price: 900 });
    await store.sql`delete from catalog_internal.learned_names`;
    await one.read();
    expect(one.forms.held).toBeNull();
    await learn(one, { lowest_ask: 900 });
    expect(await rows()).toEqual(held('lowest_ask'));
  });
});

describe('the fields of the manifest', () => {
  const fields = async () => (await readLearnedNames(store.sql)).manifest;
  const applied = (snapshotId: string, url: string, id: string | null) =>
    baseline(store.url, [line('A')], { token: { snapshotId, readBy: { url, snapshotId: id } } });

  test('are those of the last applied manifest', async () => {
    await applied('s1', 'file.url', 'version');
    expect(await fields()).toEqual({ url: 'file.url', snapshotId: 'version' });
    await applied('s2', 'download', null);
    expect(await fields()).toEqual({ url: 'download', snapshotId: 'version' });
    const names = keepNames(store.sql, systemClock);
    await names.read();
    expect(names.knownFields()).toEqual({ url: 'download', snapshotId: 'version' });
  });

  test('do not include that of an identifier that the delta has rejected twice in a row', async () => {
    const { sql } = store;
    const rejected = async (snapshotId: string, isUnknown: boolean) => {
      await applied(snapshotId, 'url', 'id');
      await noteBrokenChain(sql, snapshotId, isUnknown);
      return (await fields()).snapshotId;
    };
    // A delta that is too large to send was counted from a known token; and once, a replica may not know a new one
    // yet.
    expect(await rejected('s1', true)).toBe('id');
    expect(await rejected('s2', false)).toBe('id');
    expect(await rejected('s3', true)).toBeNull();
    expect(await fields()).toEqual({ url: 'url', snapshotId: null });
  });
});

describe('for another partner', () => {
  const OURS = { baseUrl: 'https://partner.example/v1', apiKey: 'key' };
  const OTHER = { ...OURS, baseUrl: 'https://staging.partner.example/v1' };

  beforeEach(async () => {
    await noteAccount(store.sql, OURS);
    await learn(await daemon(), { price: 900 });
  });

  test('nothing is known once its account is adopted', async () => {
    await adoptAccount(store.sql, OTHER);
    expect(await rows()).toEqual({});
  });

  test('nothing is known if the address is corrected before anything is mirrored; with another key, all is', async () => {
    await noteAccount(store.sql, { ...OURS, apiKey: 'new' });
    expect(await rows()).toEqual(held('price'));
    await noteAccount(store.sql, OTHER);
    expect(await rows()).toEqual({});
  });
});

test('a clock that was ahead leaves no date in the future', async () => {
  const { sql } = store;
  await sql`update catalog_internal.clock set high_water = clock_timestamp(), steady_since = clock_timestamp()`;
  await setClockAhead(sql, 5 * HOUR);
  await sql`update catalog_internal.clock set high_water = clock_timestamp()`;
  const one = await daemon();
  await learn(one, { price: 900 });
  await one.answered({ lowest_ask: 900 });
  await setClockAhead(sql, 0);
  await putClockRight(sql);
  const [dated] = await sql`
    select missing_since <= clock_timestamp() and learned_at <= clock_timestamp() as past from catalog_internal.learned_names`;
  expect(dated).toEqual({ past: true });
});

test('`doctor` gets both forms that are held, and none that is not', async () => {
  const known = async () => (await readOwnMirror(store.sql, FIELDS)).known;
  const { forms } = await daemon();
  const both = () => forms.read(() => ({ form: { field: null }, also: { field: 'price' } }));
  for (let n = 0; n < 2; n += 1) await both();
  expect(await known()).toMatchObject({ price: null, also: null });
  await both();
  expect(await known()).toMatchObject({ price: { field: null }, also: { field: 'price' } });
});
