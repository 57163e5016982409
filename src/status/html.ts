import { harmless } from './style.ts';

/** HTML in which texts of others are escaped, as `html` does. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Value = string | number | Html | readonly Html[] | null;

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '`': '&#96;',
};

const escaped = (text: string): string => harmless(text).replace(/[&<>"'`]/g, (sign) => ESCAPES[sign] ?? '');

function shown(value: Value): string {
  if (value === null) return '';
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map(({ text }) => text).join('');
  return escaped(String(value));
}

/**
 * Builds HTML from a template, for elements and quoted attributes: escapes values unless they are HTML themselves.
 */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(parts.reduce((text, part, i) => `${text}${shown(values[i - 1] ?? null)}${part}`));
}
