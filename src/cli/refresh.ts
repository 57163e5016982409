import { loadConfig, processSources } from '../config/config.ts';
import { plural } from '../lib/format.ts';
import { shownJson } from '../lib/json.ts';
import { MAX_KEY_LENGTH } from '../partner/text.ts';
import { harmless } from '../status/style.ts';
import { acceptDoubted } from '../store/answer/seller-doubts.ts';
import {
  refreshAll,
  type Refreshed,
  refreshManifest,
  refreshSkus,
  whyNothingLeaves,
} from '../store/sellers/refresh.ts';
import { type Arguments, type Command, EXIT, problemsIn, UsageError } from './command.ts';
import { withMirror } from './mirror.ts';

/** How many unknown SKUs are shown, and how many characters of each. */
const [SHOWN_SKUS, SHOWN_LENGTH] = [5, 40];
const skusAre = (n: number, more = ''): string => `${n} ${more}${plural(n, 'SKU is', 'SKUs are')}`;

export const refresh: Command = {
  summary: 'queue SKUs for immediate refresh, or request a full resync',
  usage:
    'refresh <sku>...\nrefresh --accept [sku...]\nrefresh --manifest [--accept-shrink]\nrefresh --all\nrefresh --metadata',
  examples: [
    [
      'catalog-mirror refresh DD1391-100 FV5029-141',
      'refresh two SKUs next; unknown ones are mirrored from now on',
    ],
    ['catalog-mirror refresh --accept DD1391-100', 'its price is doubted as implausible, and is right'],
    ['catalog-mirror refresh --manifest', 'fetch and apply a new manifest now'],
    [
      'catalog-mirror refresh --manifest --accept-shrink',
      'the same, and accept it although it lists far fewer SKUs than before',
    ],
  ],
  exits: ['ok', 'failed', 'usage'],
  options: {
    accept: { type: 'boolean' },
    manifest: { type: 'boolean' },
    'accept-shrink': { type: 'boolean' },
    all: { type: 'boolean' },
    metadata: { type: 'boolean' },
  },
  optionHelp: {
    accept:
      'act on prices that are doubted (implausible, mass-move) without a second answer: of these SKUs, or of all; refresh none',
    manifest: 'fetch and apply a new manifest now',
    'accept-shrink': 'with --manifest: accept one that lists far fewer SKUs than before',
    all: 'queue every known SKU for a price refresh; a removed one only if the watchlist has it, else name it',
    metadata: 'the same for a metadata refresh',
  },
  positionals: true,
  problemsOf: problemsIn(wantedBy),
  async run({ print, ...args }) {
    const { values, positionals, accept, acceptShrink } = wantedBy(args);
    const config = loadConfig(processSources.env, processSources.readFile, { need: 'database' });
    await withMirror(config, async (sql, which) => {
      if (which !== null) print(`in ${which}:`);
      const tell = (
        { due, added, released, resumed, outside = 0, once = 0 }: Refreshed,
        more: string,
        what: string,
      ) => {
        print(`${skusAre(due, more)} ${what} now`);
        if (added.length > 0) print(unknownLine(added));
        if (released > 0)
          print(
            `${released} of those due no longer ${plural(released, 'waits', 'wait')} after errors or deferrals`,
          );
        if (outside > 0)
          print(
            `${skusAre(outside)} out of scope and not asked for: see catalog.scope, and \`catalog-mirror show\` for the rule`,
          );
        if (once > 0)
          print(
            `${skusAre(once)} asked for once: a rule of catalog.scope goes by their metadata, and decides then`,
          );
        if (resumed) print('bulk calls were paused after failures, and are made again');
      };
      if (accept) {
        const accepted = await acceptDoubted(sql, positionals.length > 0 ? positionals : null);
        print(`${skusAre(accepted)} no longer doubted`);
        return;
      }
      if (positionals.length > 0) tell(await refreshSkus(sql, positionals), '', 'due');
      if (values['manifest'] === true) {
        await refreshManifest(sql, acceptShrink);
        print(`a new manifest is requested${acceptShrink ? ' and will be accepted even if it shrank' : ''}`);
      }
      if (values['all'] === true) tell(await refreshAll(sql, 'prices'), 'more ', 'due');
      if (values['metadata'] === true) tell(await refreshAll(sql, 'metadata'), 'more ', 'due for metadata');
      const why = await whyNothingLeaves(sql);
      if (why !== null) print(`nothing is fetched now: ${why}`);
    });
    return EXIT.ok;
  },
};

/** Returns why this cannot be a SKU that anybody means, or null if it may be one. */
function problemOf(sku: string): string | null {
  if (sku === '' || sku.length > MAX_KEY_LENGTH) return 'not a SKU';
  if (/\p{Cc}/u.test(sku))
    return 'not a SKU: it has a control character, such as the line end of a file from Windows';
  return sku === sku.trim() ? null : 'not a SKU: it begins or ends with a blank';
}

/** Names the first SKUs that were unknown, so that a list of wrong names is noticed. */
function unknownLine(added: readonly string[]): string {
  const shown = added
    .slice(0, SHOWN_SKUS)
    .map((sku) => harmless(sku.length > SHOWN_LENGTH ? `${sku.slice(0, SHOWN_LENGTH)}…` : sku));
  const names = [...shown, ...(added.length > SHOWN_SKUS ? ['…'] : [])].join(', ');
  return added.length === 1
    ? `1 SKU was unknown and is mirrored from now on: ${names}`
    : `${added.length} SKUs were unknown and are mirrored from now on: ${names}`;
}

function wantedBy({ values, positionals, given }: Arguments) {
  const problems = positionals.flatMap((sku) => {
    const problem = problemOf(sku);
    return problem === null ? [] : [`${shownJson(sku.slice(0, SHOWN_LENGTH))}: ${problem}`];
  });
  if (positionals.length === 0 && given.size === 0)
    problems.push('expected SKUs, --accept, --manifest, --all or --metadata');
  const accept = values['accept'] === true;
  if (accept && Object.keys(values).length > 1) problems.push('--accept: expected no other option with it');
  for (const option of ['all', 'metadata'])
    if (positionals.length > 0 && given.has(option))
      problems.push(`--${option}: expected no SKUs with it, as it is of all`);
  const acceptShrink = values['accept-shrink'] === true;
  if (acceptShrink && !given.has('manifest')) problems.push('--accept-shrink: expected --manifest with it');
  if (problems.length > 0) throw new UsageError(problems);
  return { values, positionals, accept, acceptShrink };
}
