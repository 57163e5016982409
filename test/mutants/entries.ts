import { faultsOf, type Mutant } from './mutant.ts';

const WIRE = [
  'test/partner/size-map.test.ts',
  'test/partner/wire.test.ts',
  'test/partner/entry-forms.test.ts',
  'test/partner/emptied-field.test.ts',
  'test/partner/corners.test.ts',
];

const OTHERS = [
  'test/partner/not-sizes.test.ts',
  'test/partner/other-members.test.ts',
  'test/partner/size-maps-model.test.ts',
];

/** Faults in how prices are read from the entries of size_map, and answers before they are parsed. */
export const ENTRIES: readonly Mutant[] = [
  ...faultsOf(
    'src/partner/entry-forms.ts',
    [
      'test/partner/entry-forms.test.ts',
      'test/partner/entry-forms-model.test.ts',
      'test/partner/two-forms-model.test.ts',
    ],
    ['wire: another field becomes the price at once', 'const HELD_MS = 3_600_000;', 'const HELD_MS = 0;'],
    [
      'wire: a field that is there again has been away all along',
      '{ ...known, missingSince: null, also: beside }',
      '{ ...known, also: beside }',
    ],
    ['forms: two answers alike are enough', 'const ALIKE = 3;', 'const ALIKE = 2;'],
    [
      'forms: answers count as alike although others came between',
      'const answers = isSame ? known.answers + 1 : 1;',
      'const answers = known.answers + 1;',
    ],
    [
      'forms: records of another form are read before answers have agreed',
      'answers >= ALIKE && isAmong(form, priceFields) ? form : null;\n}\n\n/** Returns both',
      'answers >= 1 && isAmong(form, priceFields) ? form : null;\n}\n\n/** Returns both',
    ],
    [
      'forms: an answer of the other form alone is a change of form',
      'if (isOther && also === null) return { memory: known, news: null };\n',
      '',
    ],
    [
      'forms: where most have the other form, it is not seen that the first has gone',
      'if (isOther && also === null) return',
      'if (isOther) return',
    ],
    ['forms: the other form is held for ever', 'beside: isOver ? null : known,', 'beside: known,'],
    [
      'forms: another takes the place of the other form at once',
      'const isOver = now - missingSince >= HELD_MS;',
      'const isOver = true;',
    ],
    [
      'forms: the other form that is there again has been away all along',
      'missingSince === null ? known : { ...known, missingSince: null }, news: null };',
      'known, news: null };',
    ],
    [
      'forms: the other form that is not configured any longer is held',
      'known.answers < ALIKE || !isAmong(known.form, priceFields)',
      'known.answers < ALIKE',
    ],
    [
      'forms: a field that is not configured any longer counts',
      'field === null || priceFields.includes(field);',
      'priceFields.length > 0;',
    ],
    [
      'forms: numbers without a field count for no list',
      'field === null || priceFields.includes(field);',
      "priceFields.includes(field ?? '');",
    ],
    [
      'forms: an answer is not read again by what another has learned',
      'if (kept === true) return { answer, news };',
      'if (kept !== null) return { answer, news };',
    ],
    [
      'forms: what could not be kept is read again and again',
      'if (kept === null) return { answer, news: null };\n',
      'if (kept === null) throw new Error();\n',
    ],
    [
      'forms: what an hour without it has let go is held',
      "return { memory: { ...NOTHING_LEARNED, others }, news: { kind: 'let-go', ...news } };",
      "return { memory: known, news: { kind: 'let-go', ...news } };",
    ],
  ),
  ...faultsOf(
    'src/partner/delta-answer.ts',
    ['test/partner/pages.test.ts'],
    [
      'pages: one that is told of in an object is the whole',
      'if (inner !== undefined) return',
      'if (false) return',
    ],
    [
      'pages: a name with other letters or signs tells of none',
      "name.toLowerCase().replaceAll(/[^a-z]/g, '')",
      'name',
    ],
    [
      'pages: text that says no tells of another',
      'return NO_TEXT.test(value.trim());',
      "return value === '';",
    ],
    ['pages: where the answer ends is another', '&& !isHere(value, ends)', ''],
    ['pages: the next one is where the answer begins', 'asked.size === 1 && ', ''],
    ['pages: one is several', 'Number(value) > 1', 'Number(value) > 0'],
    ['pages: a map by SKU tells of another', '|| Object.keys(value).length > MAX_MEMBERS', ''],
  ),
  ...faultsOf(
    'src/partner/size-map.ts',
    WIRE,
    ['decimals: thousands after a point are', '\\.\\d{1,2}', '\\.\\d{1,3}'],
    ['decimals: nothing with three of them is something', '|0{1,20}\\.0{1,20}', ''],
  ),
  ...faultsOf(
    'src/partner/size-map.ts',
    OTHERS,
    ['not sizes: few records tell', 'export const ENOUGH = 20;', 'export const ENOUGH = 19;'],
    [
      'not sizes: a name is none whatever it says',
      'return member.isNumber || !mayBePrice(value);',
      'return true;',
    ],
    [
      'not sizes: what is an entry is left out for its name',
      'member.records < ENOUGH || hasField(value, priceFields)',
      'member.records < ENOUGH',
    ],
    [
      'not sizes: a number beside objects is the form of those that are sold out',
      'isNone(name, value) || isNoPrice(name, value) ? [] : [value]',
      'isNone(name, value) ? [] : [value]',
    ],
    [
      'not sizes: an object beside bare numbers is another form of prices until twenty records have it',
      "? prices !== 'anywhere' && hasField(value, priceFields) &&",
      '? false && hasField(value, priceFields) &&',
    ],
  ),
  ...faultsOf(
    'src/partner/other-members.ts',
    OTHERS,
    [
      'not sizes: what says nothing in most records is none',
      'others > 0 && others >= beside / 2',
      'others > 0',
    ],
    ['not sizes: a price in one record is overlooked', 'if (formed > 0)', 'if (formed > 1)'],
    [
      'not sizes: each answer begins to count anew',
      'Math.min(ENOUGH, known.records + (isNone ? others : 0))',
      'Math.min(ENOUGH, isNone ? others : 0)',
    ],
    [
      'not sizes: bare numbers are none beside a summary of them',
      'const isTold = found.size <= sizes.size && (',
      'const isTold = (',
    ],
    [
      'not sizes: one record among bare numbers makes them none',
      '(!isBareAlone(held, also) || ofObjects.length >= ENOUGH)',
      'true',
    ],
    [
      'not sizes: an object beside bare numbers prices who is sold out',
      'return isTold ? known.union(found) : known;',
      'return known;',
    ],
    [
      'not sizes: two numbers beside the first objects make these none',
      'prices.size >= LEAST_BARE',
      'prices.size > 0',
    ],
    [
      'not sizes: sizes that are objects are none beside numbers of the answer',
      'if (held !== null && held.field !== null) return known;\n',
      '',
    ],
    [
      'not sizes: sizes that have become objects stay none',
      "if (kind === 'field') tally.amongObjects += 1;",
      '',
    ],
    [
      'not sizes: answers with live SKUs alone make an object a size, though others have bare prices',
      'return amongObjects === 0 || hasBare ? before',
      'return amongObjects === 0 ? before',
    ],
    [
      'not sizes: a few answers without bare prices make an object a size',
      'return Math.min(MOST_OBJECTS, before + besideBare);',
      'return Math.min(ENOUGH, before + besideBare);',
    ],
  ),
  ...faultsOf(
    'src/partner/bulk-answer.ts',
    OTHERS,
    ['not sizes: they are sizes all the same', 'if (none.isNone(size, raw)) continue;', ''],
    [
      'not sizes: a number beside objects is a price among bare numbers',
      'by.found?.field === null && !saysNothingElse(entries)',
      'by.found?.field === null',
    ],
    [
      'not sizes: what earlier answers have shown is forgotten',
      'noteOthers(names.others ?? [], all,',
      'noteOthers([], all,',
    ],
  ),
  ...faultsOf(
    'src/partner/size-map.ts',
    OTHERS,
    [
      'not sizes: any text with a digit may be a price',
      'value.length <= MOST_SIGNS && PRICE_LIKE.test(value)',
      '/\\d/.test(value)',
    ],
    [
      'not sizes: before any form is known, an object beside bare numbers prices who is sold out',
      "? prices !== 'anywhere' && hasField(",
      "? prices === 'bare' && hasField(",
    ],
    [
      'not sizes: a word is of the form of bare numbers',
      'field === null && saysNumber(entry);',
      'field === null && !isBlank(entry);',
    ],
  ),
  ...faultsOf(
    'src/partner/transport.ts',
    ['test/partner/client.test.ts'],
    ['transport: a byte order mark is a part of the JSON', ".replace(BYTE_ORDER_MARK, '')", ''],
  ),
  ...faultsOf(
    'src/partner/size-map.ts',
    WIRE,
    [
      'wire: numeric text is no price',
      "if (typeof value !== 'string') return undefined;\n  const text",
      "if (typeof value !== 'number') return undefined;\n  const text: string",
    ],
    [
      'wire: any field of an entry may be its price',
      'if (known !== null && entries.some((entry) => isOfForm(entry, known))) return known;',
      '',
    ],
    [
      'forms: a field that is emptied says that all is sold out',
      'return isEmptied ? { ...known, isEmptied } : known;',
      'return known;',
    ],
    [
      'forms: a few records show that a field is emptied',
      'filled.length >= EMPTIED_RECORDS && isElsewhere',
      'isElsewhere',
    ],
    [
      'forms: a field is emptied where nothing has taken its place',
      'filled.length >= EMPTIED_RECORDS && isElsewhere',
      'filled.length >= EMPTIED_RECORDS',
    ],
    [
      'forms: null in a field that is missing is one that is there again',
      'known.isMissing === true || (',
      'false || (',
    ],
    [
      'forms: beside a field another one is a price, too',
      'formOf(rest, form.field === null ? priceFields : [], known)',
      'formOf(rest, priceFields, known)',
    ],
    [
      'forms: a record without an entry of the first form is read by it all the same',
      'return !has(form) && has(also) ? also : form;',
      'return form;',
    ],
    ['wire: the lowest ask is no price', 'amount >= MIN_PRICE &&', 'amount > MIN_PRICE &&'],
    [
      'wire: a price with satang is one',
      'amount !== undefined && Number.isInteger(amount) &&',
      'amount !== undefined &&',
    ],
    ['wire: a price that no column holds is one', '&& amount <= INT4_MAX;', '&& amount <= Infinity;'],
    [
      'wire: the entry of a number as text is lost',
      "entry: typeof entry === 'number' ? null : entry",
      'entry: null',
    ],
    [
      'wire: an entry in another form says that there is no offer',
      '(isWithoutOffer(entry, form) ? {} : { unreadable: true })',
      '(isWithoutOffer(entry, form) ? {} : {})',
    ],
    ['wire: a null in the price field cannot be read', '? isBlank(entry[field])\n', '? isBlank(entry)\n'],
  ),
];
