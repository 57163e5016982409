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

test('members that are muted are told of as that, and columns as what goes on to be history', () => {
  const told: SyncEvent[] = [];
  const member = { part: 'product', path: '["views"]' } as const;
  const column = { part: 'column', path: '["brand"]' } as const;
  const reconciliation = { skuAnswers: new Map(), unexpected: 0, read: null, cut: false };
  const tell = (members: Applied['members']) =>
    tellApplied(
      { emit: (event) => told.push(event) },
      { number: '1', skus: [], askedAt: new Date(0) },
      reconciliation,
      {
        ...NOTHING,
        members,
      },
    );
  tell({ muted: [member, column], unmuted: [], renewed: [member] });
  tell({ muted: [], unmuted: [member, column], renewed: [column] });
  expect(told.filter(({ event }) => event !== 'bulk.applied')).toEqual([
    { event: 'member.muted', ...member },
    { event: 'column.unsteady', path: '["brand"]' },
    { event: 'member.unmuted', ...member },
    { event: 'column.steady', path: '["brand"]' },
  ]);
});

test('members of size_map that are no sizes are told of by the beginning of their names, some of them', () => {
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
