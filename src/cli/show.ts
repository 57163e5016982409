import { loadConfig, processSources } from '../config/config.ts';
import { shownJson } from '../lib/json.ts';
import { harmless } from '../status/style.ts';
import { type Arguments, type Command, EXIT, problemsIn, UsageError } from './command.ts';
import { withMirror } from './mirror.ts';
import type { Explained } from './show-explained.ts';
import { storyOf } from './show-story.ts';
import { terminalOf } from './terminal.ts';

export const show: Command = {
  summary: 'where the numbers of a SKU come from, and how far they can be trusted',
  usage: 'show [--json] <sku>',
  examples: [
    ['catalog-mirror show DD1391-100', 'one screen about a SKU'],
    ['catalog-mirror show --json DD1391-100', 'the same for programs: what catalog.explain returns'],
  ],
  exits: ['ok', 'failed', 'usage'],
  options: { json: { type: 'boolean' } },
  optionHelp: { json: 'print one JSON object' },
  positionals: true,
  problemsOf: problemsIn(skuOf),
  async run({ print, ...args }) {
    const sku = skuOf(args);
    const config = loadConfig(processSources.env, processSources.readFile, { need: 'database' });
    return await withMirror(
      config,
      async (sql, which) => {
        const isJson = args.values['json'] === true;
        if (which !== null && !isJson) process.stderr.write(`in ${which}:\n`);
        const [{ explained }] = await sql<[{ explained: Explained | null }]>`
          select catalog.explain(${sku}) as explained`;
        if (explained === null)
          throw Object.assign(new Error(`the mirror does not know ${JSON.stringify(sku)}`), {
            hint: `SKUs are spelled as the partner spells them; \`catalog-mirror refresh ${JSON.stringify(sku)}\` mirrors it from now on`,
          });
        if (isJson) print(shownJson(explained));
        else
          for (const line of storyOf(explained, terminalOf(process.stdout, processSources.env).width))
            print(harmless(line));
        return EXIT.ok;
      },
      { forReaders: true },
    );
  },
};

function skuOf({ positionals: [sku = '', ...more] }: Arguments): string {
  if (sku === '' || more.length > 0)
    throw new UsageError(['expected one SKU: catalog-mirror show DD1391-100']);
  return sku;
}
