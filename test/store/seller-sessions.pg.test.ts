import { expect, test } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { outcome } from './refreshing.ts';
import { answerAsked, found, knownSkus, mark, useStore } from './support.ts';

const store = useStore();

/** What sessions, roles and databases of sellers may have set. */
const SESSIONS = {
  extra_float_digits: ['-15', '-13', '3'],
  standard_conforming_strings: ['off'],
  DateStyle: ['German, DMY'],
  IntervalStyle: ['sql_standard'],
  TimeZone: ['Pacific/Chatham'],
  bytea_output: ['escape'],
} as const;
const settings = Object.entries(SESSIONS).flatMap(([name, values]) =>
  values.map((value): [string, string] => [name, value]),
);

interface Explained {
  readonly confidence: string;
  readonly belief: unknown;
  readonly price: number;
}

/** Returns numbers and texts, but no times that pass. */
async function said(sql: Sql): Promise<unknown> {
  const [row] = await sql<[Explained]>`
    select e -> 'trust' ->> 'confidence' as confidence, e -> 'belief' as belief, e #> '{prices,0,price}' as price
    from catalog.explain('A') as e`;
  const hinted = await sql`
    select source, catalog.hint('A', source) as taken from unnest(array['deltas', 'delta.x', 'manifesto', 'manifest.x', 'orders']) source`;
  return { ...row, hinted: [...hinted] };
}

test.each(settings)(
  'a seller whose session has %s = %s gets the same answers as any other',
  async (name, value) => {
    await knownSkus(store.sql, ['A'], { priceSource: 'live' });
    await mark(store.sql, ['A'], 'new', true);
    await answerAsked(store.sql, found('A', { 9: 10_000 }));
    const expected = await said(store.sql);
    const seller = connect(store.url, { max: 1 });
    try {
      // Not as a parameter of the connection, because `connect` sets its own.
      await seller.unsafe(`set ${name} = '${value}'`);
      expect(await said(seller)).toEqual(expected);
      const began = Date.now();
      expect(await outcome(seller`call catalog.refresh_now(array['A'], timeout => '2 s')`)).toMatch(
        /^CM003 /,
      );
      expect(Date.now() - began).toBeLessThan(10_000);
    } finally {
      await seller.end({ timeout: 1 });
    }
  },
);
