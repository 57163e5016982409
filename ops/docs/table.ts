/** A Markdown table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  // Within a cell a bar would end it.
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', String.raw`\|`)).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}
