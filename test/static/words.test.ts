import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

/** Private words, each with its replacement. Names that users rely on are removed from the text first. */
const GONE: readonly (readonly [RegExp, string])[] = [
  [
    /\b(lookPrice|look_price|nextLooks|LookAhead|LiveLook|looksPerMinute|firstLooks)\b/,
    'refresh, refreshThreshold',
  ],
  [/\b(a|the|next|last|live|first|each|every) looks?\b(?! (like|as))/i, 'a refresh'],
  [/\blooked at\b/i, 'refreshed, read, checked'],
  [/\b(mostMinutes|most_minutes|solvePrice)\b/, 'maxIntervalMinutes, solveThreshold'],
  [/\bfates?\b|\bfateOf\b/i, 'SkuResult'],
  [/\b(meaningOf|verdicts)\b/i, 'decision, health, check'],
  [
    /\bsparingly\b|createRarely|createTroubles|\btroubles\b|storeTrouble|noiseLines|captureNoise/i,
    'throttled, LogThrottle, storeFailure',
  ],
  [/\bsilences?\b|silentUntil|silent_until|silenceMs/i, 'back-off, backoffUntil'],
  [/\b(probeSentAt|probe_sent_at|probeSize|createProbe)\b/, 'half-open request, trial call, raw client'],
  [/\bown refusals\b|OwnRefusals|\bstays? back\b|\bheld back\b/i, 'circuit breaker, paused'],
  [/\bknock(s|ed)?\b|KNOCK_MS/i, 'wake'],
  [/waitForCompany|COMPANY_MS|COMPANY_CALLS|\bwait(s|ing)? for company\b/i, 'linger'],
  [/createShift|SHIFT_MS|SIDE_TURNS|ledgerTurns|PaceTurn|TurnState/, 'slice, iteration, permit'],
  [/\bowed\b|peekOwed|stillOwed/i, 'due'],
  [/\b(placeLive|placeAll|unplacedLive)\b/, 'schedule'],
  [
    /foreign_user|foreignUser|strangerLines|strangerOf|\bspared\b|\balien\b/,
    'other, unlisted, skipped, unrelated',
  ],
  [/\bpresence\b|announcePresence|BE_HERE|comeBack/i, 'instance, acquire, reconnect'],
  [/\bblemish|\bcomplain|\bmend\b/i, 'lint, printError, fix'],
  [
    /catalog_?figures|createFiguresReader|\bupkeep\b|\bkeeping\b: Keeping|YOUNG_SPACE/i,
    'counts, maintenance, retention',
  ],
  [/\bskusPerCall\b/, 'bulk.maxSkus, or bulkMaxSkus outside of that group'],
];

/** Names that users rely on: events, values of labels, columns and members, also in the package's types. */
const FIXED =
  /pace\.silenced|library\.noise|\bowed_(lane|reason|since)\b|sku_trust\.owed|'(owed|silence|probe)'|`(owed|backlog\.owed)`|because="[^"]*"|id="owed"|#owed\b|\bestimate\.owed\b|k\.owed\b|AS owed\b|next_look_at|\bowed(Reason|Lane|Since)\b|\bisOwed\b|\bnextLookAt\b/g;
/** In the status, `owed` is also a member of `status.json`. */
const MEMBER = new RegExp(`${FIXED.source}|\\bowed\\b`, 'g');
/** The sandbox uses the partner's words, such as foreign orders. */
const READ = /^(src\/(?!sandbox\/).*\.ts|docs\/.*\.md|ops\/.*\.md|[A-Z]+\.md)$/;

const files = execFileSync('git', ['ls-files'], { encoding: 'utf8' })
  .split('\n')
  .filter((path) => READ.test(path));

/** Returns the line, and a version with camelCase names split into words. */
function readings(line: string): readonly string[] {
  const apart = line.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2');
  return apart === line ? [line] : [line, apart];
}

/** Decides whether a text may contain a private word; otherwise its lines need not be read one by one. */
function isSuspect(text: string): boolean {
  const read = readings(text);
  return GONE.some(([word]) => read.some((reading) => word.test(reading)));
}

/** Returns the private words in a line of the file, each with its replacement. */
function privateWords(path: string, line: string): string[] {
  const read = readings(line.replace(path.startsWith('src/status/') ? MEMBER : FIXED, ''));
  return GONE.flatMap(([word, instead]) => {
    const found = read.map((text) => word.exec(text)?.[0]).find((text) => text !== undefined);
    return found === undefined ? [] : [`${found} (say: ${instead})`];
  });
}

test.each([
  ['const stillOwedRows = 1;', 'Owed'],
  ['function readOwed() {}', 'Owed'],
  ['const SKUFate = 1;', 'Fate'],
  ['a SKU that is owed', 'owed'],
  ['const nextLook = 1;', 'next Look'],
])('a private word is found in %j', (line, word) => {
  expect(isSuspect(`one\n${line}\nthree`)).toBe(true);
  expect(privateWords('src/a.ts', line)[0]).toContain(word);
});

test('names that users rely on are not private words', () => {
  expect(privateWords('src/a.ts', 'const { owedReason, isOwed, nextLookAt, followed } = row;')).toEqual([]);
});

test('private words occur neither in the code nor in the documents', () => {
  expect(files.length).toBeGreaterThan(100);
  const found = files.flatMap((path) => {
    const text = readFileSync(path, 'utf8');
    if (!isSuspect(text)) return [];
    return text
      .split('\n')
      .flatMap((line, at) => privateWords(path, line).map((word) => `${path}:${at + 1}: ${word}`));
  });
  expect(found).toEqual([]);
});
