import { type Config, loadConfig, processSources } from '../config.ts';
import {
  checkCredential,
  checkMirrorDatabase,
  checkPartner,
  checkRate,
  checkRedis,
} from './doctor/checks.ts';
import { type Finding, warn } from './doctor/finding.ts';
import { createScrubber } from '../telemetry/scrub.ts';
import { type Command, EXIT } from './command.ts';

export const doctor: Command = {
  summary: 'checks the configuration against reality, one line a check',
  usage: 'doctor [--json]',
  options: { json: { type: 'boolean' } },
  optionHelp: { json: 'for programs' },
  positionals: false,
  async run({ values, print }) {
    const config = loadConfig(processSources.env, processSources.readFile);
    // Messages of drivers and field names of the partner's answers are not ours: they may hold anything.
    const scrubber = createScrubber(config.secrets);
    const findings = (await examine(config)).map((finding) => ({
      ...finding,
      text: scrubber.text(finding.text),
    }));
    if (values['json'] === true) print(JSON.stringify(findings));
    else for (const finding of findings) print(lineOf(finding));
    return findings.some(({ level }) => level === 'FAIL') ? EXIT.failed : EXIT.ok;
  },
};

async function examine(config: Config): Promise<Finding[]> {
  const warnings = config.warnings.map((text): Finding => ({ check: 'environment', level: 'WARN', text }));
  const mirror = await checkMirrorDatabase(config);
  const paced = !mirror.some(({ check, level }) => check === 'postgres' && level === 'FAIL');
  return [
    ...warnings,
    ...checkCredential(config),
    checkRate(config),
    ...mirror,
    ...(await checkRedis(config)),
    ...(paced ? await checkPartner(config) : [notAsked]),
  ];
}

const notAsked = warn(
  'partner',
  'not asked',
  'requests to the partner are counted in Postgres: mend that first',
);

function lineOf({ level, check, text, todo }: Finding): string {
  return `${level.padEnd(5)}${check.padEnd(16)}${text}${todo === undefined ? '' : `\n${' '.repeat(21)}${todo}`}`;
}
