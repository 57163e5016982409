import { isObject } from '../lib/json.ts';

/*
 * Members by which answers of this and of other APIs say that they are one page of several (partner rules 4.3). The
 * partner documents no pages of a delta: a name that is not here would have the token moved past what the other pages
 * report. Names are compared in lower case and without what is no letter.
 */

/** That there is more, or where it is. */
const MORE = new Set([
  'nextcursor',
  'nextpage',
  'nextpagetoken',
  'nextpageurl',
  'nexttoken',
  'nextlink',
  'nexturl',
  'odatanextlink',
  'lastevaluatedkey',
  'continuation',
  'continuationtoken',
  'hasmore',
  'hasnext',
  'hasnextpage',
  'more',
  'moreresults',
  'truncated',
  'istruncated',
]);
/** The same, or where this answer begins or leads to. */
const MORE_OR_HERE = new Set(['cursor', 'next']);
/** How many pages there are. */
const PAGES = new Set(['pages', 'totalpages', 'pagecount', 'lastpage']);

/** An object of more members is a map by SKU or the like. */
const MAX_MEMBERS = 50;
/** A link is an object in an object; what is nested deeper says something. */
const MAX_DEPTH = 2;

/** Text that says the same as nothing. */
const NO_TEXT = /^\s*(?:false|no|none|null|0)?\s*$/i;

/** Whether a value says that there is nothing further. */
function saysNothing(value: unknown, depth = MAX_DEPTH): boolean {
  if (typeof value === 'string') return NO_TEXT.test(value);
  if (typeof value !== 'object' || value === null) return !value;
  return Object.values(value).every((inner) => depth > 0 && saysNothing(inner, depth - 1));
}

const isScalar = (value: unknown) => typeof value === 'string' || typeof value === 'number';

/** Whether a value, or the address of a link, is where the answer begins or ends: from there the next poll goes on. */
function isHere(value: unknown, ends: ReadonlySet<string>): boolean {
  if (isObject(value)) return isHere(value['href'], ends);
  if (!isScalar(value)) return false;
  const text = String(value);
  const [, query = ''] = text.split('?');
  const asked = new URLSearchParams(query);
  // Anything beside it, as a page or an offset, leads further.
  return ends.has(text) || (asked.size === 1 && ends.has(asked.get('since') ?? ''));
}

/** Whether a member announces another page. */
function announces(name: string, value: unknown, ends: ReadonlySet<string>): boolean {
  const plain = name.toLowerCase().replaceAll(/[^a-z]/g, '');
  if (MORE.has(plain)) return !saysNothing(value);
  if (plain === 'cursor' && isObject(value)) return false;
  if (MORE_OR_HERE.has(plain)) return !saysNothing(value) && !isHere(value, ends);
  return PAGES.has(plain) && isScalar(value) && Number(value) > 1;
}

/**
 * The member of an answer, or of an object in it such as `pagination`, by which it is one page of several; null where
 * there is none. `ends`: the tokens of its own beginning and end. Pure.
 */
export function pageMember(
  body: Readonly<Record<string, unknown>>,
  ends: ReadonlySet<string>,
): string | null {
  for (const [name, value] of Object.entries(body)) {
    if (announces(name, value, ends)) return name;
    if (!isObject(value) || Object.keys(value).length > MAX_MEMBERS) continue;
    const inner = Object.entries(value).find((member) => announces(...member, ends));
    if (inner !== undefined) return `${name}.${inner[0]}`;
  }
  return null;
}
