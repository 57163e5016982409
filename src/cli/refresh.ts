import { loadConfig, processSources } from '../config/config.ts';
import { refreshAll, refreshManifest, refreshSkus } from '../store/refresh.ts';
import { type Command, EXIT, UsageError } from './command.ts';
import { withMirror } from './mirror.ts';

const LONGEST_SKU = 512;

export const refresh: Command = {
  summary: 'marks SKUs due now, or asks for a new baseline',
  usage: 'refresh <sku>...\nrefresh --manifest\nrefresh --all\nrefresh --metadata',
  examples: [
    ['catalog-mirror refresh DD1391-100 FV5029-141', 'two SKUs, next; unknown ones are mirrored from now on'],
    ['catalog-mirror refresh --manifest', 'after a manifest was refused because it shrank'],
  ],
  exits: ['ok', 'failed', 'usage'],
  options: { manifest: { type: 'boolean' }, all: { type: 'boolean' }, metadata: { type: 'boolean' } },
  optionHelp: {
    manifest: 'ask for a new baseline now; also confirms a manifest that lists far fewer SKUs',
    all: 'every known SKU is due for a re-price now',
    metadata: 'every known SKU is due for its metadata now',
  },
  positionals: true,
  async run({ values, positionals, print }) {
    const problems = positionals
      .filter((sku) => sku === '' || sku.length > LONGEST_SKU)
      .map((sku) => `${JSON.stringify(sku.slice(0, 40))}: not a SKU`);
    if (positionals.length === 0 && Object.keys(values).length === 0)
      problems.push('expected SKUs, --manifest, --all or --metadata');
    if (problems.length > 0) throw new UsageError(problems);
    const config = loadConfig(processSources.env, processSources.readFile, { need: 'database' });
    await withMirror(config, async (sql) => {
      if (positionals.length > 0) print(`${await refreshSkus(sql, positionals)} SKUs are due now`);
      if (values['manifest'] === true) {
        await refreshManifest(sql);
        print('a new baseline is asked for; a shrunken manifest is confirmed');
      }
      if (values['all'] === true) print(`${await refreshAll(sql, 'prices')} more SKUs are due now`);
      if (values['metadata'] === true)
        print(`${await refreshAll(sql, 'metadata')} more SKUs are due for their metadata now`);
    });
    return EXIT.ok;
  },
};
