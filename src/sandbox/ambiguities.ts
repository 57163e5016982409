import type { Rng } from './rng.ts';
import { type Json, SERVICE_ERROR } from './wire.ts';
import type { ManifestLine } from './world.ts';

/** What an ambiguous sandbox does now and then, within the partner's rules. */
export const AMBIGUITIES = {
  'withdrawn-without-size-type': 'an empty size_map of a withdrawn SKU has no size_type',
  'no-size-type': 'a filled size_map has no size_type',
  'no-product': 'a record has no product, or null in its place',
  'no-product-member': 'a product lacks one of its members, or has null in its place',
  'price-zero': 'a size without an ask has the price 0',
  'no-list-read': 'a bulk body whose list has another name is read as one without SKUs',
  'no-empty-list': 'a delta has null for an empty list, or no such list',
  'no-token': 'a delta in which nothing is new has no to_snapshot, or null in its place',
  'new-token': 'to_snapshot is another text in each answer, and each of them is understood',
  'delta-page': 'a delta is a part of the answer, and says so; the next one is whole',
  'delta-refused': 'a delta answers 405, 408, 413 or 500; the next one is answered',
  'time-without-zone': 'generated_at is in UTC without saying so',
  'build-began': 'generated_at is when building began, minutes before the snapshot',
  'byte-order-mark': 'the manifest file begins with a byte order mark',
  'unreadable-field': 'a manifest line has nonsense in sizes or updated_at',
} as const;

export type Ambiguity = keyof typeof AMBIGUITIES;

/** One manifest line as it is written. */
export type SpokenLine = Record<keyof ManifestLine, unknown>;

const NONSENSE: readonly [Partial<SpokenLine>, ...Partial<SpokenLine>[]] = [
  { sizes: '2' },
  { updated_at: '0000-00-00T00:00:00.000Z' },
  { updated_at: 1_795_000_000 },
];
const PAGE_MARKS: readonly [Json, ...Json[]] = [{ has_more: true }, { nextCursor: 'bmV4dA==' }];
const REFUSALS: readonly [number, ...number[]] = [405, 408, 413, 500];
const BOM = '\uFEFF';
const BUILD_MS = 6 * 60_000;
/** A reader may rightly refuse a whole file with more unreadable lines. */
const MAX_UNREADABLE = 5;
const DELTA_LISTS = ['changed', 'removed', 'now_live'] as const;

interface Said {
  readonly sizeType: unknown;
  readonly product: string;
}

/**
 * Answers in ways that were once misread, drawn for each answer. They keep the truth: what is left out was said
 * before and has not changed since, and what withholds a change comes only once, so a mirror that reads every
 * answer correctly contains the sandbox's catalog.
 */
export class Ambiguities {
  /** While false, answers are plain; tokens that were handed out are still understood. */
  enabled = true;
  /** How often each kind was drawn. */
  readonly drawn = new Map<Ambiguity, number>();
  readonly #rng: Rng;
  readonly #said = new Map<string, Said>();
  /** The cohort of each SKU by the files so far; null if any answer has said something else. */
  readonly #cohorts = new Map<string, unknown>();
  #tokens = 0;
  #withheld = false;

  constructor(rng: Rng) {
    this.#rng = rng;
  }

  /** Returns whether a bulk body without the list has no SKUs (partner rule 4.1.bulk: other keys are ignored). */
  ignoresMissingList(): boolean {
    return this.enabled && this.#note('no-list-read');
  }

  /** Answers a SKU's record (partner rules 2.4). */
  record(sku: string, body: Json): Json {
    const { size_type: sizeType, ...sizes } = body['size_map'] as Json;
    const product = JSON.stringify(body['product']);
    const said = this.#said.get(sku);
    this.#said.set(sku, { sizeType, product });
    if (!this.enabled) return body;
    const bare = Object.keys(sizes).length === 0 ? 'withdrawn-without-size-type' : 'no-size-type';
    const isBare = said?.sizeType === sizeType && this.#draw(bare, 0.5);
    const spoken: Json = {
      ...body,
      size_map: { ...this.#withZeros(sizes), ...(isBare ? {} : { size_type: sizeType }) },
    };
    return said?.product === product ? this.#withLessProduct(spoken) : spoken;
  }

  #withZeros(sizes: Json): Json {
    const zero = (entry: unknown): unknown => {
      if (entry === null) return 0;
      if (typeof entry !== 'object') return entry;
      return Object.fromEntries(Object.entries(entry).map(([name, value]) => [name, value ?? 0]));
    };
    const entries = Object.entries(sizes);
    const isUnpriced = entries.some(([, entry]) => JSON.stringify(zero(entry)) !== JSON.stringify(entry));
    if (!isUnpriced || !this.#draw('price-zero', 0.7)) return sizes;
    return Object.fromEntries(entries.map(([size, entry]) => [size, zero(entry)]));
  }

  #withLessProduct(body: Json): Json {
    if (this.#draw('no-product', 0.15)) return this.#without(body, 'product');
    if (!this.#draw('no-product-member', 0.15)) return body;
    const product = body['product'] as Json;
    const [first = '', ...rest] = Object.keys(product);
    return { ...body, product: this.#without(product, this.#rng.pick([first, ...rest])) };
  }

  /** Returns the body without this member, or with null in its place. */
  #without(body: Json, member: string): Json {
    if (this.#rng.chance(0.5)) return { ...body, [member]: null };
    return Object.fromEntries(Object.entries(body).filter(([name]) => name !== member));
  }

  /** Returns the snapshot that a token stands for. */
  understood(since: string | null): string | null {
    return since?.replace(/~\d+$/, '') ?? null;
  }

  /** Answers a delta (partner rules 2.8) since `since`, or a gateway's refusal. `skus` are the delta's true lists. */
  delta(body: Json, since: string | null, skus: { changed: string[]; removed: string[]; nowLive: string[] }) {
    if (this.enabled && this.#withholds('delta-refused')) {
      const status = this.#rng.pick(REFUSALS);
      return { status, body: status === 500 ? SERVICE_ERROR : { statusCode: status, message: 'Refused' } };
    }
    if (this.enabled && this.#withholds('delta-page')) {
      const halves = DELTA_LISTS.map((name) => [name, half(body[name] as unknown[])]);
      const page = { ...body, ...Object.fromEntries(halves), ...this.#rng.pick(PAGE_MARKS) };
      return { status: 200, body: page };
    }
    this.#withheld = false;
    this.#learn(skus);
    return { status: 200, body: this.enabled ? this.#spokenDelta(body, since) : body };
  }

  #withholds(kind: Ambiguity): boolean {
    if (this.#withheld || !this.#draw(kind, 0.06)) return false;
    this.#withheld = true;
    return true;
  }

  #spokenDelta(body: Json, since: string | null): Json {
    const empty = DELTA_LISTS.filter((name) => (body[name] as unknown[]).length === 0);
    const isNews = empty.length < DELTA_LISTS.length || body['to_snapshot'] !== since;
    let spoken = body;
    if (!isNews && this.#draw('no-token', 0.4)) spoken = this.#without(spoken, 'to_snapshot');
    else if (this.#draw('new-token', 0.3)) {
      this.#tokens += 1;
      spoken = { ...spoken, to_snapshot: `${String(body['to_snapshot'])}~${this.#tokens}` };
    }
    if (empty.length === 0 || !this.#draw('no-empty-list', 0.3)) return spoken;
    for (const name of empty) {
      // Beside changes, live SKUs could be in a list of another name (partner rule 4.2.7).
      const mayGo = name !== 'now_live' || empty.includes('changed');
      spoken = mayGo ? this.#without(spoken, name) : { ...spoken, [name]: null };
    }
    return spoken;
  }

  /** Answers the manifest response (partner rules 2.7). */
  manifest(body: Json): Json {
    if (!this.enabled) return body;
    // The same for every snapshot, so that no build overtakes another.
    this.#note('build-began');
    const began = new Date(Date.parse(String(body['generated_at'])) - BUILD_MS).toISOString();
    const isZoneless = this.#draw('time-without-zone', 0.5);
    return { ...body, generated_at: isZoneless ? began.replace('Z', '') : began };
  }

  /** Yields the lines of a manifest file (partner rules 2.6), as `write` formats them. */
  *file(lines: Iterable<ManifestLine>, write: (line: SpokenLine) => string): Generator<string> {
    const listed = new Set<string>();
    let bom = this.enabled && this.#draw('byte-order-mark', 0.6) ? BOM : '';
    let unreadable = 0;
    for (const line of lines) {
      const isKnown = this.#cohorts.get(line.sku) === line.price_source;
      this.#learnCohort(line.sku, line.price_source, true);
      listed.add(line.sku);
      const bent =
        this.enabled && isKnown && unreadable < MAX_UNREADABLE && this.#draw('unreadable-field', 0.12);
      unreadable += Number(bent);
      yield bom + write(bent ? { ...line, ...this.#rng.pick(NONSENSE) } : line);
      bom = '';
    }
    for (const sku of this.#cohorts.keys()) if (!listed.has(sku)) this.#cohorts.set(sku, null);
  }

  #learn({ changed, removed, nowLive }: { changed: string[]; removed: string[]; nowLive: string[] }): void {
    const live = new Set(nowLive);
    for (const sku of changed) this.#learnCohort(sku, live.has(sku) ? 'live' : 'snapshot');
    for (const sku of removed) this.#learnCohort(sku, null);
  }

  #learnCohort(sku: string, cohort: unknown, isInFile = false): void {
    const known = this.#cohorts.get(sku);
    if (known === undefined ? isInFile : known !== cohort)
      this.#cohorts.set(sku, known === undefined ? cohort : null);
  }

  #draw(kind: Ambiguity, probability: number): boolean {
    return this.#rng.chance(probability) && this.#note(kind);
  }

  #note(kind: Ambiguity): true {
    this.drawn.set(kind, (this.drawn.get(kind) ?? 0) + 1);
    return true;
  }
}

function half<T>(list: readonly T[]): T[] {
  return list.slice(0, Math.floor(list.length / 2));
}
