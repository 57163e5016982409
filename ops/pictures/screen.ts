/** What a terminal shows at one moment: rows of cells, each with its sign and how it is painted. */
export interface Cell {
  readonly sign: string;
  readonly style: Style;
}

export interface Style {
  /** SGR code of the colour of the text; null: the terminal's own. */
  readonly colour: number | null;
  readonly bold: boolean;
  readonly dim: boolean;
}

const PLAIN: Style = { colour: null, bold: false, dim: false };
const BLANK: Cell = { sign: ' ', style: PLAIN };
// oxlint-disable-next-line no-control-regex
const TOKENS = /\u001B\[([?\d;]*)([A-Za-z])|[\r\n]|[^\u0000-\u001F\u007F]/gu;

function styled(style: Style, code: number): Style {
  if (code === 0) return PLAIN;
  if (code === 1) return { ...style, bold: true };
  if (code === 2) return { ...style, dim: true };
  if (code === 22) return { ...style, bold: false, dim: false };
  if (code === 39) return { ...style, colour: null };
  return code >= 30 && code <= 37 ? { ...style, colour: code } : style;
}

/**
 * A terminal of so many columns that never scrolls: it understands what the demo writes (text, colours, the cursor up, erasing to
 * the end of line and screen) and takes nothing from the rest.
 */
export class Screen {
  readonly #columns: number;
  readonly #rows: Cell[][] = [[]];
  #row = 0;
  #column = 0;
  #style = PLAIN;
  #rest = '';

  constructor(columns: number) {
    this.#columns = columns;
  }

  /** Takes a piece of output, which may end within a sequence. */
  write(piece: string): void {
    const text = this.#rest + piece;
    const cut = text.lastIndexOf('\u001B');
    // oxlint-disable-next-line no-control-regex
    const isWhole = cut < 0 || /^\u001B\[[?\d;]*[A-Za-z]/.test(text.slice(cut));
    this.#rest = isWhole ? '' : text.slice(cut);
    for (const [token, values = '', final] of (isWhole ? text : text.slice(0, cut)).matchAll(TOKENS)) {
      if (final !== undefined) this.#control(final, values);
      else if (token === '\r') this.#column = 0;
      else if (token === '\n') this.#down();
      else this.#put(token);
    }
  }

  /** The rows as they are, without blank ones at the end. */
  rows(): readonly (readonly Cell[])[] {
    const isBlank = (row: readonly Cell[]) => row.every(({ sign }) => sign === ' ');
    const last = this.#rows.findLastIndex((row) => !isBlank(row));
    return this.#rows.slice(0, last + 1).map((row) => [...row]);
  }

  text(): string {
    return this.rows()
      .map((row) => row.map(({ sign }) => sign).join(''))
      .join('\n');
  }

  #down(): void {
    this.#row += 1;
    this.#rows[this.#row] ??= [];
  }

  #put(sign: string): void {
    if (this.#column >= this.#columns) {
      this.#column = 0;
      this.#down();
    }
    const row = (this.#rows[this.#row] ??= []);
    while (row.length < this.#column) row.push(BLANK);
    row[this.#column] = { sign, style: this.#style };
    this.#column += 1;
  }

  #control(final: string, values: string): void {
    const numbers = values.split(';').map(Number);
    if (final === 'm') this.#style = numbers.reduce(styled, this.#style);
    if (final === 'A') this.#row = Math.max(0, this.#row - (numbers[0] || 1));
    if (final === 'K' || final === 'J') this.#rows[this.#row]?.splice(this.#column);
    if (final === 'J') this.#rows.length = Math.max(this.#row + 1, 1);
  }
}
