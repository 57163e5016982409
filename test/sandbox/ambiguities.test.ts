import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { AMBIGUITIES, type Ambiguity } from '../../src/sandbox/index.ts';
import { type Body, type Caller, type Line, parseLines, start } from './support.ts';

type Price = { size_map: Record<string, unknown>; product?: Record<string, unknown> | null };

const ROUNDS = 150;

/**
 * Sends the same calls to a plain and an ambiguous sandbox whose worlds move alike, and returns the ambiguities
 * drawn.
 */
async function both(rounds: number, act: (plain: Caller, ambiguous: Caller) => Promise<void>) {
  const options = { skus: 80, liveShare: 0.1, seed: 9, now: () => 1_795_000_000_000 };
  const plain = await start(options);
  const ambiguous = await start({ ...options, ambiguous: true });
  try {
    for (let n = 0; n < rounds; n += 1) await act(plain, ambiguous);
    return ambiguous.sandbox.ambiguities?.drawn ?? new Map<Ambiguity, number>();
  } finally {
    await Promise.all([plain.sandbox.close(), ambiguous.sandbox.close()]);
  }
}

function move({ sandbox: { world } }: Caller): string {
  world.step(6);
  return world.buildSnapshot();
}

const without = (record: Price) => {
  const { size_type: sizeType, ...sizes } = record.size_map;
  return { sizeType, sizes, product: record.product ?? undefined };
};

test('records omit only what they said before, and 0 means no ask', async () => {
  const skus = ['constructor', '__proto__', 'toString'];
  const known = new Map<string, Price>();
  let nth = 0;
  const drawn = await both(ROUNDS, async (...callers) => {
    nth += 1;
    for (const { sandbox } of callers) {
      if (nth % 40 === 0) sandbox.world.withdraw('constructor');
      if (nth % 40 === 20) sandbox.world.relist('constructor');
      if (nth % 10 === 0) sandbox.world.setPrice('toString', '8', nth % 20 === 0 ? null : 4000 + nth);
      if (nth % 30 === 0) sandbox.world.correctSizeType('__proto__', `T${nth}`);
    }
    const [plain, spoken] = await Promise.all(callers.map(async (caller) => (await caller.bulk(skus)).json));
    const { results, ...rest } = spoken as Body;
    expect(rest).toEqual({ ...plain, results: undefined, requested: 3, deduped: 3 });
    for (const sku of skus) {
      const truth = without(plain?.results[sku] as unknown as Price);
      const said = without(results[sku] as unknown as Price);
      for (const [size, price] of Object.entries(truth.sizes))
        expect(said.sizes[size] === price || (price === null && said.sizes[size] === 0)).toBe(true);
      expect(Object.keys(said.sizes)).toEqual(Object.keys(truth.sizes));
      // Whatever is left out is as it was last sent.
      const before = known.get(sku);
      expect(said.sizeType ?? before?.size_map['size_type']).toBe(truth.sizeType);
      const members = Object.entries(said.product ?? {}).filter(([, value]) => value !== null);
      const kept = { ...before?.product, ...Object.fromEntries(members) };
      expect(kept).toEqual(truth.product);
      known.set(sku, { size_map: { size_type: truth.sizeType }, product: truth.product ?? null });
    }
  });
  const kinds: Ambiguity[] = [
    'withdrawn-without-size-type',
    'no-size-type',
    'no-product',
    'no-product-member',
    'price-zero',
  ];
  expect(kinds.filter((kind) => !drawn.has(kind))).toEqual([]);
});

test('a bulk body with another list name asks for nothing, and nothing is answered', async () => {
  const drawn = await both(1, async (plain, ambiguous) => {
    expect((await plain.bulk(['constructor'], 'items')).status).toBe(400);
    expect(await ambiguous.bulk(['constructor'], 'items')).toMatchObject({
      status: 200,
      json: { results: {}, not_found: [], deferred: [], errors: [], requested: 0, deduped: 0 },
    });
    expect((await ambiguous.bulk(['constructor'])).json.requested).toBe(1);
  });
  expect([...drawn.keys()]).toEqual(['no-list-read']);
});

test('deltas are complete unless they say otherwise, and nothing withholds them twice in a row', async () => {
  let token = '';
  let withheld = false;
  const drawn = await both(ROUNDS, async (plain, ambiguous) => {
    const since = plain.sandbox.world.newestSnapshot() ?? '';
    if (token === '') token = since;
    const isMoved = ambiguous.sandbox.requests.length % 3 > 0 && !withheld;
    if (isMoved) for (const caller of [plain, ambiguous]) move(caller);
    const { status, json } = await ambiguous.delta(token);
    if (status !== 200 || json['has_more'] === true || typeof json['nextCursor'] === 'string') {
      expect([200, 405, 408, 413, 500]).toContain(status);
      expect(withheld).toBe(false);
      withheld = true;
      // The mirror keeps its token, so the world stands still until it has asked again.
      return;
    }
    const truth = (await plain.delta(token.replace(/~\d+$/, ''))).json;
    withheld = false;
    for (const name of ['changed', 'removed', 'now_live'] as const)
      expect(json[name] ?? []).toEqual(truth[name]);
    if (truth.changed.length > 0) expect(json.now_live).not.toBe(undefined);
    const next = json.to_snapshot as string | null | undefined;
    expect(next?.replace(/~\d+$/, '') ?? token.replace(/~\d+$/, '')).toBe(truth.to_snapshot);
    token = next ?? token;
  });
  const kinds: Ambiguity[] = ['no-empty-list', 'no-token', 'new-token', 'delta-page', 'delta-refused'];
  expect(kinds.filter((kind) => !drawn.has(kind))).toEqual([]);
});

test('a manifest is dated in UTC when its build began, and its lines are those of the snapshot', async () => {
  let nth = 0;
  let bent = 0;
  const crossed = new Set<string>();
  const drawn = await both(ROUNDS / 3, async (...callers) => {
    nth += 1;
    for (const { sandbox } of callers) {
      if (nth % 5 > 0) continue;
      const listed = [...sandbox.world.truth().values()].filter((row) => row.listed);
      const row = listed[nth % listed.length];
      if (row !== undefined) {
        crossed.add(row.sku);
        sandbox.world.cross(row.sku, row.priceSource === 'live' ? 'snapshot' : 'live');
      }
      sandbox.world.buildSnapshot();
    }
    const [plain, spoken] = await Promise.all(callers.map(async (caller) => (await caller.manifest()).json));
    const time = String(spoken?.['generated_at']);
    expect(Date.parse(time.endsWith('Z') ? time : `${time}Z`)).toBe(
      Date.parse(String(plain?.['generated_at'])) - 360_000,
    );
    expect(spoken).toEqual({ ...plain, generated_at: time, url: spoken?.url });
    const [lines, said] = await Promise.all([plain, spoken].map((json) => linesAt(String(json?.url))));
    expect(said).toHaveLength(lines?.length ?? 0);
    for (const [at, line] of (lines ?? []).entries()) {
      const own = said?.[at] as Line;
      if (JSON.stringify(own) === JSON.stringify(line)) continue;
      bent += 1;
      expect({ ...own, sizes: 0, updated_at: '' }).toEqual({ ...line, sizes: 0, updated_at: '' });
      expect(nth).toBeGreaterThan(1);
      expect(crossed.has(line.sku)).toBe(false);
    }
  });
  expect(bent).toBe(drawn.get('unreadable-field'));
  const kinds: Ambiguity[] = ['time-without-zone', 'build-began', 'byte-order-mark', 'unreadable-field'];
  expect(kinds.filter((kind) => !drawn.has(kind))).toEqual([]);
});

async function linesAt(url: string): Promise<Line[]> {
  const bytes = Buffer.from(await (await fetch(url)).arrayBuffer());
  return parseLines(
    Buffer.from(
      gunzipSync(bytes)
        .toString()
        .replace(/^\uFEFF/, ''),
    ),
  );
}

test('the same seed gives the same answers, and nothing is ambiguous without the option', async () => {
  const answers = async (ambiguous: boolean) => {
    const caller = await start({ ambiguous });
    const texts: string[] = [];
    for (let n = 0; n < 30; n += 1) texts.push((await caller.bulk(['constructor', 'toString'])).text);
    await caller.sandbox.close();
    return texts;
  };
  const first = await answers(true);
  expect(new Set(first).size).toBeGreaterThan(3);
  expect(await answers(true)).toEqual(first);
  expect(new Set(await answers(false)).size).toBe(1);
  expect(Object.keys(AMBIGUITIES)).toHaveLength(15);
});
