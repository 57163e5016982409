import { loadConfig, processSources } from '../config/config.ts';
import { plural } from '../lib/format.ts';
import { parseJson, shownJson } from '../lib/json.ts';
import { harmless } from '../status/style.ts';
import type { Sql, Tx } from '../store/connection/db.ts';
import { sqlState } from '../store/connection/sql-errors.ts';
import { type Arguments, type Command, EXIT, problemsIn, UsageError } from './command.ts';
import { hiddenLine } from './hidden-rows.ts';
import { withMirror } from './mirror.ts';
import { cancelledBy, orStopped, untilStopped } from './process.ts';
import { gridOf, type Printer, terminalOf } from './terminal.ts';

/** How many rows are fetched at a time, and the most that a table shows. */
const BATCH = 1000;
/** SQLSTATE of a statement that writes in a read-only transaction. */
const READ_ONLY = '25006';
/** Postgres's type numbers: a date, a time without a zone, a moment, and those that the driver leaves as text. */
const [DATE, TIMESTAMP, TIMESTAMPTZ, INT8, NUMERIC] = [1082, 1114, 1184, 20, 1700];
const [JSON_TEXT, JSONB, INT8_ARRAY, NUMERIC_ARRAY] = [114, 3802, 1016, 1231];
/** Matches a statement whose first word, after comments and brackets, is one of these. */
const beginsWith = (words: string): RegExp =>
  new RegExp(`^(?:[\\s(]|--[^\\n]*(?:\\n|$)|/\\*(?:[^*]|\\*(?!/))*\\*/)*(?:${words})\\b`, 'i');
/** Its rows come as a stream, not as a result. */
const COPY = beginsWith('copy');
/** Its result says how many rows it has. Of others (EXPLAIN, SHOW) the driver's cursor drops the last rows: all. */
const COUNTED = beginsWith('select|with|values|table');

export const sql: Command = {
  summary: 'run one SQL query on the mirror; it can only read, and needs no psql',
  usage: 'sql [--json] "<query>"',
  examples: [
    [
      `catalog-mirror sql "SELECT size, price FROM catalog.current_prices WHERE sku = 'DD1391-100' AND actionable"`,
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
  moreHelp: [
    'With --json a bigint up to 2^53 and a numeric of at most 15 digits are numbers, and beyond that text, which ' +
      'loses no digit: cast what is compared, as avg(price)::float8.',
  ],
  optionHelp: { json: `print one JSON object per row; without it a table of at most ${BATCH} rows` },
  positionals: true,
  problemsOf: problemsIn(queryOf),
  endsUnread: () => true,
  async run(args) {
    const query = queryOf(args);
    const config = loadConfig(processSources.env, processSources.readFile, { need: 'database' });
    const isJson = args.values['json'] === true;
    await untilStopped('not all rows were printed', (signal) =>
      withMirror(
        config,
        async (connection, which) => {
          if (which !== null && !isJson) process.stderr.write(`in ${which}:\n`);
          const hidden = await hiddenLine(connection);
          if (hidden !== null) process.stderr.write(`${hidden}\n`);
          await reading(connection, isJson, signal, (tx) =>
            isJson ? printJson(tx, query, args, signal) : printTable(tx, query, args.print),
          );
        },
        { giveUp: signal, ofUser: true, forReaders: true },
      ),
    );
    return EXIT.ok;
  },
};

function queryOf({ positionals: [query = '', ...more] }: Arguments): string {
  if (query.trim() === '' || more.length > 0)
    throw new UsageError(['expected one query, in quotes: catalog-mirror sql "SELECT …"']);
  if (COPY.test(query))
    throw new UsageError(['COPY has no rows to show: give the query itself, or use catalog-mirror export']);
  return query;
}

interface Page {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
}

/**
 * Yields the rows of a query, some at a time; columns may share a name. It runs only one statement, and only one that
 * reads: the protocol accepts no second one, and the transaction no write.
 */
async function* pagesOf(tx: Tx, query: string): AsyncGenerator<Page> {
  const columnsOf = (rows: object) =>
    (rows as { readonly columns?: readonly { readonly name: string }[] }).columns?.map(({ name }) => name) ??
    [];
  const all = tx.unsafe(query).values();
  if (!COUNTED.test(query)) {
    const rows = await all;
    yield { columns: columnsOf(rows), rows };
    return;
  }
  let columns: readonly string[] | null = null;
  for await (const rows of all.cursor(BATCH)) {
    // The driver names the columns only with the first rows.
    columns ??= columnsOf(rows);
    yield { columns, rows };
  }
}

/** Leaves as Postgres writes it what a Date cannot represent: a day, a time without a zone, and infinity. */
function keepTexts(connection: Sql, isJson: boolean): void {
  const asWritten = (text: string) => text;
  const moment = (text: string) => (Number.isNaN(Date.parse(text)) ? text : new Date(text));
  const { parsers } = connection.options;
  // The driver marks parsers of an array's text by `array`, and creates them from what it finds when it connects.
  const exactArray = (type: number) => {
    const parser = parsers[type];
    return parser && Object.assign((text: string) => exactly(parser(text)), { array: true });
  };
  Object.assign(parsers, {
    [DATE]: asWritten,
    [TIMESTAMP]: asWritten,
    [TIMESTAMPTZ]: moment,
    [JSON_TEXT]: exactJson,
    [JSONB]: exactJson,
    ...(isJson && {
      [INT8]: exactNumber,
      [NUMERIC]: exactNumber,
      [INT8_ARRAY]: exactArray(INT8_ARRAY),
      [NUMERIC_ARRAY]: exactArray(NUMERIC_ARRAY),
    }),
  });
}

/** Returns a number if JSON's number keeps each of its digits, else its text. Trailing zeros are ignored. Pure. */
export function exactNumber(text: string): number | string {
  const digits = text.replace(/^-?[0.]*/, '').replace(/(\.\d*?)0+$/, '$1');
  const number = Number(text);
  const isExact =
    digits.replace('.', '').length <= 15 || (Number.isSafeInteger(number) && String(number) === text);
  // With more leading zeros than that, first some digits are lost, and then the number.
  const isKept = Number.isFinite(number) && (Math.abs(number) > 1e-300 || digits === '');
  return isKept && isExact ? number : text;
}

/** Does the same for each text of an array of any dimensions, in which the driver leaves NULL as text. Pure. */
function exactly(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(exactly);
  if (value === 'NULL') return null;
  return typeof value === 'string' ? exactNumber(value) : value;
}

/** Parses JSON; numbers that would lose a digit stay as text, as they are written. Pure. */
export function exactJson(text: string): unknown {
  return parseJson(text, (_key, value, context) =>
    typeof value === 'number' ? exactNumber(context?.source ?? String(value)) : value,
  );
}

async function reading(
  connection: Sql,
  isJson: boolean,
  signal: AbortSignal,
  work: (tx: Tx) => Promise<void>,
): Promise<void> {
  keepTexts(connection, isJson);
  const cancellable = async (tx: Tx) => {
    // Between two pages it waits for its reader, however long that takes.
    await tx`set local idle_in_transaction_session_timeout = 0`;
    await cancelledBy(signal, connection, tx, () => work(tx));
  };
  await connection.begin('read only', cancellable).catch((error: unknown) => {
    if (sqlState(error) !== READ_ONLY) throw error;
    throw Object.assign(new Error('this command only reads', { cause: error }), {
      hint: 'use psql with the rights to write, or `catalog-mirror refresh`',
    });
  });
}

/** Prints all rows. A page is read only after the previous one was taken. */
async function printJson(
  tx: Tx,
  query: string,
  { print, printed }: Printer,
  signal: AbortSignal,
): Promise<void> {
  for await (const { columns, rows } of pagesOf(tx, query)) {
    const twice = columns.find((name, at) => columns.indexOf(name) !== at);
    if (twice !== undefined)
      throw Object.assign(new Error(`two columns have the name ${harmless(twice)}`), {
        hint: 'give one of them another: SELECT … AS other_name',
      });
    const line = (row: readonly unknown[]) =>
      shownJson(Object.fromEntries(columns.map((name, at) => [name, row[at]])));
    print(rows.map(line).join('\n'));
    await orStopped(printed(), signal);
  }
}

async function printTable(tx: Tx, query: string, print: (line: string) => void): Promise<void> {
  const { width } = terminalOf(process.stdout, processSources.env);
  for await (const { columns, rows } of pagesOf(tx, query)) {
    if (columns.length > 0) for (const line of gridOf(columns, rows, width)) print(line);
    print(`(${rows.length} ${plural(rows.length, 'row')})`);
    // Nobody knows whether there are more until they are fetched.
    if (rows.length === BATCH)
      print(`only the first ${BATCH} rows are shown: use LIMIT and OFFSET, or --json`);
    return;
  }
  print('(0 rows)');
}
