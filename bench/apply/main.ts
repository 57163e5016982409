import { drizzle } from 'drizzle-orm/postgres-js';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { median, timed } from '../frame/measure.ts';
import { sizes } from '../frame/options.ts';
import { loadRecords } from '../frame/records.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report, type Row } from '../frame/table.ts';
import { countingClient } from '../frame/trips.ts';
import { seeded } from '../freshness/random.ts';
import { loadMirror } from '../scrape/load.ts';
import { type Answer, expectApplied, LEARNING, NEXT, prepare, scattered, SKUS_AN_ANSWER } from './answer.ts';
import { ormUpsert } from './orm.ts';
import { multiRowValues, rowByRow, unnestOnConflict } from './peers.ts';

/*
 * npm run bench:apply [-- --skus 1000000 --rounds 5 --json FILE] Answers of 100 SKUs with 14 sizes each, applied to a
 * mirror of that many SKUs, none, a tenth or all of the prices changed: the daemon's own function and, answer for
 * answer in turns, on the same tables, what one would write instead. Medians. Each answer is for other SKUs,
 * scattered over the whole mirror; in the first round what it left is compared with what it said.
 */

const { skus, rounds, json } = sizes({ skus: 1_000_000, rounds: 5 });
const SIZES = 14;
const ANSWERS_A_ROUND = 10;
const SHARES = [0, 0.1, 1];
/** No checkpoint and no vacuum between the rounds: they would hit one of the works and not the others. */
const SETTINGS = {
  shared_buffers: '1GB',
  max_wal_size: '32GB',
  checkpoint_timeout: '1h',
  autovacuum: 'off',
};
const REACH: Readonly<Record<string, number>> = {
  'row by row': 4.5,
  'ORM bulk upsert': 3,
  'multi-row VALUES': 1.5,
};

type Apply = (answer: Answer) => Promise<unknown>;

interface Measured {
  readonly ms: number[];
  readonly walKb: number[];
}

interface Writes {
  readonly prices: number;
  readonly skus: number;
  readonly hot: number;
}

async function writesOf(sql: Sql): Promise<Writes> {
  await sql`select pg_stat_force_next_flush()`;
  const [row] = await sql<[Writes]>`
    select sum(n_tup_ins + n_tup_upd + n_tup_del) filter (where relname = 'prices')::int as prices,
      sum(n_tup_upd) filter (where relname = 'skus')::int as skus, sum(n_tup_hot_upd) filter (where relname = 'skus')::int as hot
    from pg_stat_user_tables where schemaname = 'catalog'`;
  return row;
}

const walPosition = async (sql: Sql) => {
  const [row] = await sql<[{ bytes: number }]>`
    select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes`;
  return row.bytes;
};

await withMirrorDatabase(
  async ({ sql, url }) => {
    await loadMirror(sql, skus);
    await loadRecords(sql, SIZES);
    await sql`checkpoint`;
    const ormClient = connect(url, { max: 1 });
    const orm = drizzle(ormClient);
    const works: Readonly<Record<string, Apply>> = {
      ours: ({ claim, records }) => applyAnswer(sql, claim, records, NEXT, { learning: LEARNING }),
      'unnest … ON CONFLICT … WHERE': (answer) => unnestOnConflict(sql, answer),
      'multi-row VALUES': (answer) => multiRowValues(sql, answer),
      'ORM bulk upsert': (answer) => ormUpsert(orm, answer),
      'row by row': (answer) => rowByRow(sql, answer),
    };
    const names = scattered(skus);
    const random = seeded(1);
    const next = (share: number) =>
      prepare(
        sql,
        Array.from({ length: SKUS_AN_ANSWER }, () => names.next().value),
        share,
        random,
      );
    const rows: Row[] = [];
    for (const share of SHARES) {
      const measured = new Map(
        Object.keys(works).map((name): [string, Measured] => [name, { ms: [], walKb: [] }]),
      );
      const written = { prices: 0, skus: 0, hot: 0 };
      for (let turn = 0; turn < (rounds + 1) * ANSWERS_A_ROUND; turn += 1) {
        const warm = turn >= ANSWERS_A_ROUND;
        // As autovacuum does with tables that grow: what their statements were planned for is no longer so.
        if (turn % ANSWERS_A_ROUND === 0)
          await sql`analyze catalog.price_history, catalog_internal.unreported_moves, catalog_internal.live_rates`;
        for (const [name, apply] of Object.entries(works)) {
          const answer = await next(share);
          const before = await writesOf(sql);
          const walBefore = await walPosition(sql);
          const ms = await timed(() => apply(answer));
          if (warm) {
            measured.get(name)?.ms.push(ms);
            measured.get(name)?.walKb.push(((await walPosition(sql)) - walBefore) / 1024);
          } else await expectApplied(sql, answer);
          if (name !== 'ours') continue;
          const after = await writesOf(sql);
          for (const what of ['prices', 'skus', 'hot'] as const) written[what] += after[what] - before[what];
        }
      }
      rows.push(...rowsOf(share, measured));
      if (share === 0)
        rows.push(
          {
            work: 'nothing changed: rows of prices written',
            ours: written.prices,
            unit: 'rows',
            reach: { is: '≤', limit: 0 },
          },
          {
            work: 'nothing changed: HOT updates of skus',
            ours: (100 * written.hot) / written.skus,
            unit: '%',
            reach: { is: '≥', limit: 95 },
          },
        );
    }
    rows.push({
      work: 'round trips an answer, BEGIN and COMMIT among them',
      ours: await tripsOf(url, () => next(0.1)),
      unit: 'trips',
    });
    await ormClient.end({ timeout: 5 });
    report(rows, json);
  },
  { settings: SETTINGS },
);

/** The statements of the first answer are prepared, which takes trips of its own; the second is counted. */
async function tripsOf(url: string, next: () => Promise<Answer>): Promise<number> {
  const client = countingClient(url);
  let trips = 0;
  for (let i = 0; i < 2; i += 1) {
    const { claim, records } = await next();
    const before = client.trips();
    await applyAnswer(client.sql, claim, records, NEXT, { learning: LEARNING });
    trips = client.trips() - before;
  }
  await client.sql.end({ timeout: 5 });
  return trips;
}

function rowsOf(share: number, measured: ReadonlyMap<string, Measured>): Row[] {
  const perSecond = ({ ms }: Measured) => (SKUS_AN_ANSWER * 1000) / median(ms);
  const ours = measured.get('ours') ?? { ms: [], walKb: [] };
  const what = `${share * 100} % changed`;
  const peers = [...measured].filter(([name]) => name !== 'ours');
  return [
    ...peers.map(([name, peer]): Row => {
      const limit = share === 0.1 ? REACH[name] : undefined;
      return {
        work: `applied, ${what}`,
        ours: perSecond(ours),
        unit: 'SKUs/s',
        against: { what: name, value: perSecond(peer) },
        ...(limit === undefined ? {} : { reach: { is: '≥', limit } }),
      };
    }),
    { work: `applied, ${what}`, ours: perSecond(ours) * SIZES, unit: 'prices/s' },
    ...peers.map(([name, peer]): Row => ({
      work: `WAL an answer, ${what}`,
      ours: median(ours.walKb),
      unit: 'kB',
      against: { what: name, value: median(peer.walKb) },
    })),
  ];
}
