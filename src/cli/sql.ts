import { loadConfig, processSources } from '../config/config.ts';
import { shownJson } from '../lib/shown-json.ts';
import type { Sql, Tx } from '../store/db.ts';
import { sqlState } from '../store/sql-errors.ts';
import { type Arguments, type Command, EXIT, problemsIn, UsageError } from './command.ts';
import { withMirror } from './mirror.ts';
import { tableOf } from './table.ts';
import { terminalOf } from './terminal.ts';

/** Rows that are fetched at a time, and the most that a table shows. */
const BATCH = 1000;
/** SQLSTATE: a statement that writes, in a transaction that only reads. */
const READ_ONLY = '25006';

export const sql: Command = {
  summary: 'run one SQL query on the mirror; it can only read, and needs no psql',
  usage: 'sql [--json] "<query>"',
  examples: [
    [
      `catalog-mirror sql "SELECT size, price FROM catalog.current_prices WHERE sku = 'DD1391-100'"`,
      'the sizes of a SKU and their lowest prices',
    ],
    ['catalog-mirror sql "SELECT * FROM catalog.sync_status"', 'the mirror in one row'],
    [
      'catalog-mirror sql --json "SELECT * FROM catalog.price_history LIMIT 100"',
      'one JSON object per row, for programs',
    ],
  ],
  exits: ['ok', 'failed', 'usage'],
  options: { json: { type: 'boolean' } },
  optionHelp: { json: `print one JSON object per row; without it a table of at most ${BATCH} rows` },
  positionals: true,
  problemsOf: problemsIn(queryOf),
  async run({ print, ...args }) {
    const query = queryOf(args);
    const config = loadConfig(processSources.env, processSources.readFile, { need: 'database' });
    await withMirror(config, async (connection, which) => {
      const isJson = args.values['json'] === true;
      if (which !== null && !isJson) process.stderr.write(`in ${which}:\n`);
      await reading(connection, async (tx) => {
        if (isJson) await printJson(tx, query, print);
        else await printTable(tx, query, print);
      });
    });
    return EXIT.ok;
  },
};

function queryOf({ positionals: [query = '', ...more] }: Arguments): string {
  if (query.trim() === '' || more.length > 0)
    throw new UsageError(['expected one query, in quotes: catalog-mirror sql "SELECT …"']);
  return query;
}

/** Only one statement, and only one that reads: the protocol takes no second one, and the transaction no write. */
const cursorOf = (tx: Tx, query: string) => tx.unsafe(query).cursor(BATCH);

async function reading(connection: Sql, work: (tx: Tx) => Promise<void>): Promise<void> {
  await connection.begin('read only', work).catch((error: unknown) => {
    if (sqlState(error) !== READ_ONLY) throw error;
    throw Object.assign(new Error('this command only reads', { cause: error }), {
      hint: 'use psql with the rights to write, or `catalog-mirror refresh`',
    });
  });
}

async function printJson(tx: Tx, query: string, print: (line: string) => void): Promise<void> {
  for await (const rows of cursorOf(tx, query)) for (const row of rows) print(shownJson(row));
}

async function printTable(tx: Tx, query: string, print: (line: string) => void): Promise<void> {
  const { width } = terminalOf(process.stdout, processSources.env);
  for await (const rows of cursorOf(tx, query)) {
    for (const line of tableOf(rows, width)) print(line);
    print(rows.length === 1 ? '(1 row)' : `(${rows.length} rows)`);
    // Whether there are more is known by nobody before they are asked for.
    if (rows.length === BATCH)
      print(`only the first ${BATCH} rows are shown: use LIMIT and OFFSET, or --json`);
    return;
  }
  print('(0 rows)');
}
