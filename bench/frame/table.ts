import { writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';

/** One line of the table: what was done, how well, and against what. */
export interface Row {
  readonly work: string;
  /** What this project's code took or reached. */
  readonly ours: number;
  readonly unit: string;
  /** What a user would do instead, or what the machine allows at best, measured in the same rounds. */
  readonly against?: { readonly what: string; readonly value: number };
  /** `ours` over `against`, and what it is meant to be; without `against` the limit is for `ours`. */
  readonly reach?: { readonly is: '≥' | '≤'; readonly limit: number };
  /** Peak resident memory of the process that did our work, in MB. */
  readonly rssMb?: number;
}

const ratioOf = ({ ours, against }: Row): number | null =>
  against === undefined ? null : ours / against.value;

/** Whether what is to be reached is reached; true where nothing is. */
function isReached(row: Row): boolean {
  if (row.reach === undefined) return true;
  const value = ratioOf(row) ?? row.ours;
  return row.reach.is === '≥' ? value >= row.reach.limit : value <= row.reach.limit;
}

const machine = (): string =>
  `${cpus()[0]?.model.trim() ?? 'unknown processor'}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, Node.js ${process.versions.node}`;

const number = (value: number): string =>
  value >= 1000
    ? Math.round(value).toLocaleString('en-US')
    : value >= 10
      ? value.toFixed(1)
      : value.toFixed(2);

const COLUMNS = ['work', 'ours', 'against', 'theirs', 'ratio', 'reach', 'RSS'];

function cells(row: Row): string[] {
  const ratio = ratioOf(row);
  return [
    row.work,
    `${number(row.ours)} ${row.unit}`,
    row.against?.what ?? '',
    row.against === undefined ? '' : `${number(row.against.value)} ${row.unit}`,
    ratio === null ? '' : ratio.toFixed(2),
    row.reach === undefined ? '' : `${row.reach.is} ${row.reach.limit}${isReached(row) ? '' : ' ✗'}`,
    row.rssMb === undefined ? '' : `${Math.round(row.rssMb)} MB`,
  ];
}

/** The table as Markdown, to be read in a terminal and pasted into a page. */
function markdown(rows: readonly Row[]): string {
  const lines = [COLUMNS, ...rows.map(cells)];
  const widths = COLUMNS.map((_, i) => Math.max(...lines.map((line) => (line[i] ?? '').length)));
  const text = (line: readonly string[]) =>
    `| ${line.map((cell, i) => (i === 1 || (i >= 3 && i !== 5) ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0))).join(' | ')} |`;
  const rule = `|${widths.map((width, i) => (i === 1 || (i >= 3 && i !== 5) ? `${'-'.repeat(width + 1)}:` : '-'.repeat(width + 2))).join('|')}|`;
  return [text(COLUMNS), rule, ...lines.slice(1).map(text)].join('\n');
}

/**
 * Prints the table, writes the JSON where asked, and sets the exit code: 1 where a figure is not reached. Throws
 * where there is no figure.
 */
export function report(rows: readonly Row[], json?: string): void {
  const empty = rows.find(({ ours, against }) => !Number.isFinite(ours + (against?.value ?? 0)));
  if (empty !== undefined) throw new Error(`no figure: ${empty.work}`);
  process.stdout.write(`${machine()}\n\n${markdown(rows)}\n`);
  const missed = rows.filter((row) => !isReached(row));
  if (json !== undefined)
    writeFileSync(
      json,
      `${JSON.stringify({ machine: machine(), rows: rows.map((row) => ({ ...row, ratio: ratioOf(row), reached: isReached(row) })) }, null, 2)}\n`,
    );
  if (missed.length > 0) process.exitCode = 1;
}
