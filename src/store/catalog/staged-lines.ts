/** A manifest line as it is staged (partner rules 2.6). */
export interface StagedLine {
  readonly sku: string;
  readonly sizes: number | null;
  readonly hash: string | null;
  readonly priceSource: 'snapshot' | 'live';
  readonly updatedAt: string | null;
}

/** A line in COPY's text format. A time is one as toISOString writes it. */
export function copyText({ sku, sizes, hash, priceSource, updatedAt }: StagedLine): string {
  return `${copyField(sku)}\t${sizes ?? '\\N'}\t${copyField(hash)}\t${priceSource}\t${updatedAt ?? '\\N'}\n`;
}

const COPY_ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
};
const TO_ESCAPE = /[\\\t\n\r]/;
const EACH_TO_ESCAPE = /[\\\t\n\r]/g;

function copyField(value: string | null): string {
  if (value === null) return '\\N';
  // Asked first: there is hardly ever one, and replacing none costs more than all the rest of the line.
  return TO_ESCAPE.test(value) ? value.replaceAll(EACH_TO_ESCAPE, (c) => COPY_ESCAPES[c] ?? c) : value;
}
