import { z } from 'zod';
import { isObject, parseJson } from '../lib/json.ts';
import type { DeltaAnswer } from './answers.ts';
import {
  readTime,
  isEmptyObject,
  parseExact,
  type Reading,
  skuValue,
  type WireNames,
} from './bulk-answer.ts';
import { PartnerError } from './errors.ts';
import { lostMember } from './repeated-members.ts';
import { isBroken, isReadableSku, isReadableToken } from './text.ts';

/** For a million elements, z.array(z.unknown()) would make a copy, which takes longer than reading them. */
const deltaList = z.custom<readonly unknown[]>(Array.isArray).nullish();
/** Serialisers with a single type for lists and maps write {} or [] if either is empty. */
const emptyOrList = z.preprocess((value) => (isEmptyObject(value) ? [] : value), deltaList).optional();
const deltaSchema = z.object({
  changed: emptyOrList,
  removed: emptyOrList,
  now_live: emptyOrList,
  to_snapshot: z.union([z.string(), z.int()]).nullish(),
});
/** A longer list is not de-duplicated. */
const MAX_EACH_ONCE = 50_000;
export const DELTA_LISTS = ['changed', 'removed', 'now_live'] as const;
const DELTA_MEMBERS = [...DELTA_LISTS, 'to_snapshot'];
/** Members by which a delta answer may name the snapshot that it starts from (partner rule 2.8.open). */
const SINCE_MEMBERS = ['since', 'since_snapshot', 'sinceSnapshot', 'from_snapshot', 'fromSnapshot'];

/** Returns what the answer says, besides its four members, that shows it to be incomplete; null if nothing does. */
function incompleteness(body: Readonly<Record<string, unknown>>, since: string | null): string | null {
  const named = [since, ...['to_snapshot', ...SINCE_MEMBERS].map((name) => body[name])];
  const ends = named.flatMap((end) =>
    (typeof end === 'string' && end !== '') || typeof end === 'number' ? [String(end)] : [],
  );
  const page = pageMember(body, new Set(ends));
  if (page !== null) return `${page.slice(0, 128)}: the answer is one page of several`;
  if (DELTA_LISTS.every((name) => body[name] !== undefined)) return null;
  // Absent lists count as empty, but a list under another name would be lost.
  const other = Object.entries(body).find(
    ([name, value]) =>
      !(DELTA_LISTS as readonly string[]).includes(name) && Array.isArray(value) && value.length > 0,
  );
  if (other !== undefined)
    return `an unknown list ${other[0].slice(0, 64)} where a documented one is missing`;
  const reported = Array.isArray(body['changed']) && body['changed'].length > 0;
  return reported && body['now_live'] === undefined ? 'missing or of the wrong type: now_live' : null;
}

/**
 * Reads a delta answer (partner rules 2.8), all or nothing. An element without a SKU makes the whole answer
 * unreadable, because skipping it would lose a change permanently once the token moves; so does any sign that the
 * answer is incomplete. Lists that are null or absent are empty, except that `now_live` must not be absent beside
 * changes, because live SKUs would look covered (partner rule 4.2.7). An empty answer without a `to_snapshot` says
 * that nothing is new. A SKU that no table could hold (NUL, lone surrogates, too long) is in no mirror: it is
 * skipped and counted, so that it does not stop the delta forever.
 */
export function readDelta(
  body: unknown,
  names: WireNames,
  since: string | null = null,
): Reading<DeltaAnswer> {
  const parsed = deltaSchema.safeParse(body);
  if (!parsed.success || !isObject(body) || DELTA_MEMBERS.every((name) => body[name] === undefined)) {
    const fields = [...new Set(parsed.error?.issues.map((issue) => String(issue.path[0] ?? 'the body')))];
    return {
      ok: false,
      problem: `missing or of the wrong type: ${fields.join(', ') || DELTA_MEMBERS.join(', ')}`,
    };
  }
  const incomplete = incompleteness(body, since);
  if (incomplete !== null) return { ok: false, problem: incomplete };
  const lists: string[][] = [];
  let reported = 0;
  let skipped = 0;
  for (const name of DELTA_LISTS) {
    const readable: string[] = [];
    for (const element of parsed.data[name] ?? []) {
      const sku = skuValue(element, names.skuField);
      if (typeof sku !== 'string') return { ok: false, problem: `${name} has an element that is no SKU` };
      // It may well be a SKU of the mirror, but nothing shows which one.
      if (isBroken(sku)) return { ok: false, problem: `${name} has a SKU that is no UTF-8` };
      reported += 1;
      if (isReadableSku(sku)) readable.push(sku);
      else skipped += 1;
    }
    // A set of a million takes most of a second. Such a list is applied in pieces, which need no distinct SKUs.
    lists.push(readable.length > MAX_EACH_ONCE ? readable : [...new Set(readable)]);
  }
  const { to_snapshot: token } = parsed.data;
  const toSnapshot = token === undefined || token === null || token === '' ? null : String(token);
  if (toSnapshot === null ? reported > 0 : !isReadableToken(toSnapshot))
    return { ok: false, problem: 'to_snapshot is missing, empty, too long or not storable' };
  const [changed = [], removed = [], nowLive = []] = lists;
  return { ok: true, value: { changed, removed, nowLive, toSnapshot, skipped } };
}

const DATE_TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/;

/** Returns whether two texts are the same time, however each is written. */
function isSameTime(one: string, other: string): boolean {
  const [at, also] = [one, other].map((text) => (DATE_TIME.test(text) ? readTime(text) : null));
  return at?.getTime() !== undefined && at.getTime() === also?.getTime();
}

/**
 * Returns whether a delta answer may belong to this `since`; a cache may send one that it has kept for another. An
 * answer passes if it does not name the snapshot that it starts from, or gives a time there, such as the snapshot's
 * build time.
 */
export function answersSince(body: unknown, since: string): boolean {
  if (!isObject(body)) return true;
  return SINCE_MEMBERS.every((name) => {
    const named = Object.hasOwn(body, name) ? body[name] : undefined;
    if (typeof named === 'number') return String(named) === since || !Number.isSafeInteger(named);
    if (typeof named !== 'string' || named.trim() === '') return true;
    return named === since || isSameTime(named, since) || (DATE_TIME.test(named) && !DATE_TIME.test(since));
  });
}

/**
 * Parses the text of a delta answer; takes the slower, exact parse only if `to_snapshot` needs it. Throws
 * PartnerError, kind 'unreadable', if the parsed value has lost something that the text says.
 */
export function parseDelta(text: string): unknown {
  const body = parseJson(text);
  const lost = isObject(body) ? lostMember(text, DELTA_MEMBERS) : null;
  if (lost !== null)
    throw new PartnerError('unreadable', 'delta', { status: 200, detail: `${lost} is there more than once` });
  const token = isObject(body) ? body['to_snapshot'] : undefined;
  return typeof token === 'number' && !Number.isSafeInteger(token) ? parseExact(text) : body;
}

/*
 * Members by which answers of this and of other APIs say that they are one page of several (partner rules 4.3). The
 * partner documents no pages of a delta. If a page came under a name that is missing here, the token would move
 * past what the other pages report. Names are compared in lower case, letters only.
 */

/** They say that there is more, or where it is. */
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
/** They say the same, or where this answer begins or leads to. */
const MORE_OR_HERE = new Set(['cursor', 'next']);
/** They say how many pages there are. */
const PAGES = new Set(['pages', 'totalpages', 'pagecount', 'lastpage']);

/** An object with more members is a map, for example by SKU. */
const MAX_MEMBERS = 50;
/** A link is an object within an object. Anything nested deeper counts as saying something. */
const MAX_DEPTH = 2;

/** Texts that stand for "nothing". */
const NO_TEXT = /^(?:false|no|none|null|0)?$/i;

/** Returns whether a value says that there is nothing further. */
function saysNothing(value: unknown, depth = MAX_DEPTH): boolean {
  if (typeof value === 'string') return NO_TEXT.test(value.trim());
  if (typeof value !== 'object' || value === null) return !value;
  return Object.values(value).every((inner) => depth > 0 && saysNothing(inner, depth - 1));
}

const isScalar = (value: unknown) => typeof value === 'string' || typeof value === 'number';

/** Returns whether a value, or the address of a link, is the answer's beginning or end, where the next poll starts. */
function isHere(value: unknown, ends: ReadonlySet<string>): boolean {
  if (isObject(value)) return isHere(value['href'], ends);
  if (!isScalar(value)) return false;
  const text = String(value);
  const [, query = ''] = text.split('?');
  const asked = new URLSearchParams(query);
  // Another parameter beside `since`, such as a page or an offset, leads further.
  return ends.has(text) || (asked.size === 1 && ends.has(asked.get('since') ?? ''));
}

/** Returns whether a member announces another page. */
function announces(name: string, value: unknown, ends: ReadonlySet<string>): boolean {
  const plain = name.toLowerCase().replaceAll(/[^a-z]/g, '');
  if (MORE.has(plain)) return !saysNothing(value);
  if (plain === 'cursor' && isObject(value)) return false;
  if (MORE_OR_HERE.has(plain)) return !saysNothing(value) && !isHere(value, ends);
  return PAGES.has(plain) && isScalar(value) && Number(value) > 1;
}

/**
 * Returns the member of an answer, or of an object in it such as `pagination`, that shows it to be one page of
 * several; null if there is none. `ends` are the tokens of the answer's own beginning and end. Pure.
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
