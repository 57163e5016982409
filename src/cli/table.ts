import { shownJson } from '../lib/json.ts';
import { harmless } from '../status/style.ts';

/** A value as a cell shows it: times in ISO 8601, objects as JSON, nothing for null. */
function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'string') return harmless(value);
  return harmless(shownJson(value));
}

/** `gridOf` for rows as objects: their keys are the columns. */
export function tableOf(rows: readonly object[], width: number | null): string[] {
  return gridOf(
    Object.keys(rows[0] ?? {}),
    rows.map((row) => Object.values(row)),
    width,
  );
}

/**
 * Rows as lines of text, under their columns' names. Where a line would be longer than `width` columns, each row is
 * shown with a line a column instead, as psql does. `width` null: lines are as long as they are.
 */
export function gridOf(
  columns: readonly string[],
  rows: readonly (readonly unknown[])[],
  width: number | null,
): string[] {
  const names = columns.map(harmless);
  const cells = rows.map((row) => row.map(cellOf));
  const widths = names.map((name, i) => Math.max(name.length, ...cells.map((row) => row[i]?.length ?? 0)));
  const length = widths.reduce((sum, w) => sum + w + 2, 0) - 2;
  if (width !== null && length > width) return expanded(names, cells);
  const lineOf = (row: readonly string[]) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd();
  return [names, widths.map((w) => '-'.repeat(w)), ...cells].map(lineOf);
}

function expanded(names: readonly string[], cells: readonly (readonly string[])[]): string[] {
  const widest = Math.max(...names.map(({ length }) => length));
  return cells.flatMap((row, at) => [
    `- row ${at + 1}`,
    ...row.map((cell, i) => `${(names[i] ?? '').padEnd(widest)}  ${cell}`.trimEnd()),
  ]);
}
