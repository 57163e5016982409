import { expect, test } from 'vitest';
import type { Applied } from '../../src/store/answer/apply.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { tellApplied, tellNotSizes } from '../../src/sync/reprice/tell.ts';

const NOTHING: Applied & { readonly unpricedEntries: number } = {
  lines: [],
  members: { muted: [], unmuted: [], renewed: [] },
  accepted: 0,
  priceChanges: 0,
  metadataChanges: 0,
  reportSeconds: [],
  sizeTypeChanges: [],
  doubted: [],
  massMoved: null,
  promises: { kept: 0, late: 0, failed: 0 } as never,
  times: { comparedAt: 0, committedAt: 0, notified: false },
  unpricedEntries: 0,
};

/** Returns the events of an answer, except the one that every answer has. */
function toldOf(applied: Partial<Applied>): SyncEvent[] {
  const told: SyncEvent[] = [];
  tellApplied(
    { emit: (event) => told.push(event) },
    { number: '1', skus: [], askedAt: new Date(0) },
    { skuAnswers: new Map(), unexpected: 0, read: null, cut: false },
    { ...NOTHING, ...applied },
  );
  return told.filter(({ event }) => event !== 'bulk.applied');
}

test('muted members and unsteady columns are reported as different events', () => {
  const member = { part: 'product', path: '["views"]' } as const;
  const column = { part: 'column', path: '["brand"]' } as const;
  const told = [
    ...toldOf({ members: { muted: [member, column], unmuted: [], renewed: [member] } }),
    ...toldOf({ members: { muted: [], unmuted: [member, column], renewed: [column] } }),
  ];
  expect(told).toEqual([
    { event: 'member.muted', ...member },
    { event: 'column.unsteady', path: '["brand"]' },
    { event: 'member.unmuted', ...member },
    { event: 'column.steady', path: '["brand"]' },
  ]);
});

test('members of size_map that are no sizes are reported by the beginning of their names, ten at most', () => {
  const told: SyncEvent[] = [];
  const answer = { results: new Map(), notFound: [], deferred: [], errors: [], requested: null };
  const emit = (event: SyncEvent) => told.push(event);
  tellNotSizes({ emit }, answer);
  tellNotSizes({ emit }, { ...answer, notSizes: ['currency', 'x'.repeat(99)] });
  tellNotSizes({ emit }, { ...answer, notSizes: Array.from({ length: 30 }, (_, n) => `m${n}`) });
  expect(told).toEqual([
    { event: 'size-map.other-members', members: ['currency', 'x'.repeat(64)] },
    { event: 'size-map.other-members', members: Array.from({ length: 10 }, (_, n) => `m${n}`) },
  ]);
});

test('lost prices are reported apart from implausible ones, ten of each by name', () => {
  const doubted = Array.from({ length: 12 }, (_, n) => ({ sku: `S${n}`, oddity: 'jump' as const }));
  const lost = [
    { sku: 'L1', oddity: 'no-prices' as const },
    { sku: 'L2', oddity: 'few-sizes' as const },
  ];
  expect(toldOf({ doubted: [...doubted, ...lost] })).toEqual([
    {
      event: 'prices.implausible',
      count: 12,
      skus: doubted.slice(0, 10).map(({ sku }) => sku),
      oddities: ['jump'],
    },
    { event: 'prices.lost', count: 2, skus: ['L1', 'L2'], oddities: ['no-prices', 'few-sizes'] },
  ]);
});

test('the start, end and failed detection of mass moves are reported', () => {
  const numbers = { answers: 40, implausible: 12, move: 0.4, factor: null, skus: 7 };
  expect(toldOf({ massMoved: { event: 'began', kind: 'far', ...numbers } })).toEqual([
    { event: 'mass-move.began', kind: 'far', ...numbers },
  ]);
  expect(toldOf({ massMoved: { event: 'ended', seconds: 4000 } })).toEqual([
    { event: 'mass-move.ended', lastedSeconds: 4000 },
  ]);
  expect(toldOf({ massMoved: { event: 'failed', problem: 'SQLSTATE 57014' } })).toEqual([
    { event: 'mass-move.failed', problem: 'SQLSTATE 57014' },
  ]);
  expect(toldOf({})).toEqual([]);
});
