import { expect, test } from 'vitest';
import { discard, forget, resend } from '../../src/cli/follow/keeping.ts';
import { useStore } from '../store/support.ts';
import { movePrices } from './changes.ts';
import { answer, OK, run, session, taken } from './session.ts';

const store = useStore();

/** Puts this many changes into dead letters of the follower `shop`, at most four in each. */
async function bury(changes: number): Promise<void> {
  const client = await session(store);
  const { place, held } = await taken(client);
  await movePrices(store.sql, changes);
  await run(client, held, place, () => answer('refused', 404), { attempts: 1 });
  await client.end();
}

/** Returns what a command prints. */
async function printed(command: (print: (line: string) => void) => Promise<number>): Promise<string[]> {
  const lines: string[] = [];
  expect(await command((line) => void lines.push(line))).toBe(0);
  return lines;
}

const takesAll: Parameters<typeof resend>[2] = {
  limits: { changes: 1, bytes: 1 },
  deliver: async () => OK,
  send: async () => OK,
  close: async () => {},
};

test('one dead letter, and one change in it, are printed in the singular', async () => {
  await bury(1);
  const [sent, ...more] = await printed((print) => resend(store.sql, 'shop', takesAll, print));
  expect(sent).toMatch(/^1 change, positions /);
  expect(more).toEqual([]);
  await bury(1);
  expect(await printed((print) => discard(store.sql, 'shop', print))).toEqual(['1 dead letter deleted']);
  await bury(1);
  expect(await printed((print) => forget(store.sql, 'shop', print))).toEqual([
    'shop is forgotten, and with it 1 dead letter',
  ]);
});

test('several dead letters are printed in the plural', async () => {
  await bury(5);
  expect(await printed((print) => discard(store.sql, 'shop', print))).toEqual(['2 dead letters deleted']);
  expect(await printed((print) => discard(store.sql, 'shop', print))).toEqual(['0 dead letters deleted']);
  await bury(8);
  expect(await printed((print) => forget(store.sql, 'shop', print))).toEqual([
    'shop is forgotten, and with it 2 dead letters',
  ]);
  expect(await printed((print) => resend(store.sql, 'shop', takesAll, print))).toEqual([
    'shop has no dead letters',
  ]);
});
