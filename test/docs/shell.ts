import { parse } from 'yaml';
import { readArguments } from '../../src/cli/command.ts';
import { loadCommands } from '../../src/cli/commands.ts';
import { takeEnvFiles } from '../../src/cli/env-file.ts';
import { VARIABLES } from '../../src/config/config.ts';
import { type CodeBlock, codeBlocks, read } from './markdown.ts';

const COMMANDS = await loadCommands();

/** A command of the documents, which may span several lines. */
export interface Line {
  readonly where: string;
  readonly text: string;
}

const { scripts, version } = JSON.parse(read('package.json')) as {
  scripts: Record<string, string>;
  version: string;
};
const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  services: Record<string, { profiles?: string[] }>;
  volumes: Record<string, unknown>;
};

/** Returns a block's commands, without blank lines and comments. */
function linesOf({ page, line, text }: CodeBlock): Line[] {
  const commands = text.replaceAll('\\\n', ' ').split('\n');
  return commands
    .map((command) => command.replace(/(?:^|\s+)# .*$/, '').trim())
    .filter((command) => command !== '')
    .map((command) => ({ where: `${page}:${line}`, text: command }));
}

/** Returns the arguments of every call of the program in a command. */
export function callsIn(command: string): string[][] {
  // For a container engine, the call starts with the name of the image.
  const text = command.replace(/^docker (?:build.*|run .* (?=catalog-mirror\b))/, '');
  return [
    ...text.matchAll(
      /(?:\bnpm start(?: --)?|\bnpm run demo(?: --)?|(?<![\w/.-])catalog-mirror)(?= |$)([^|&;>)\n]*)/g,
    ),
  ].map(([call, words = '']) => [
    ...(call.startsWith('npm run demo') ? ['demo'] : []),
    ...words
      .trim()
      .split(/\s+/)
      .filter((word) => word !== ''),
  ]);
}

/** Throws if the program would reject these arguments. */
export function checkCall(words: readonly string[]): void {
  const [name = 'run', ...args] = takeEnvFiles(words).rest;
  if (['help', '--help', '--version'].includes(name)) return;
  const command = COMMANDS.get(name.startsWith('-') ? 'run' : name);
  if (command === undefined) throw new Error(`no such command: ${name}`);
  readArguments(command, name.startsWith('-') ? [name, ...args] : args);
}

function checkScripts(text: string): void {
  const named = [...text.matchAll(/\bnpm (?:run ([\w:]+)|(test|start|ci))/g)].map(
    ([, run, own]) => run ?? own ?? '',
  );
  const unknown = named.filter((name) => name !== 'ci' && !Object.hasOwn(scripts, name));
  if (named.length === 0 || unknown.length > 0) throw new Error(`no such script: ${unknown.join(', ')}`);
}

function checkCompose(text: string): void {
  const profiles = new Set(Object.values(compose.services).flatMap((service) => service.profiles ?? []));
  const asked = [...text.matchAll(/--profile (\S+)/g)].map(([, profile = '']) => profile);
  const [, words = ''] = /\b(?:up|down|logs|exec|build|stop|restart)\b(.*)$/.exec(text) ?? [];
  const services = words.split(' ').filter((word) => /^[a-z][\w-]*$/.test(word));
  const unknown = [
    ...asked.filter((profile) => !profiles.has(profile)),
    ...services
      .slice(0, /\bexec\b/.test(text) ? 1 : undefined)
      .filter((name) => !Object.hasOwn(compose.services, name)),
  ];
  if (unknown.length > 0) throw new Error(`not in docker-compose.yml: ${unknown.join(', ')}`);
}

function checkVariables(text: string): void {
  const names = [...text.matchAll(/\b([A-Z][A-Z_]+)=/g)].map(([, name = '']) => name);
  const known = VARIABLES.flatMap(({ name }) => [name, `${name}_FILE`]);
  const unknown = names.filter((name) => !known.includes(name));
  if (names.length === 0 || unknown.length > 0) throw new Error(`no such variable: ${unknown.join(', ')}`);
}

/** Commands that the tests do not run: why not, and what is checked instead. The first match counts. */
export const NOT_RUN: readonly {
  readonly like: RegExp;
  readonly because: string;
  readonly check: (text: string) => void;
}[] = [
  {
    like: /^(?:[A-Z_]+=\S+ )+npm start$/,
    because: 'goes on until it is stopped',
    check: checkVariables,
  },
  { like: /^export /, because: 'stands for settings of the reader', check: checkVariables },
  {
    like: /^docker volume rm /,
    because: 'needs a container engine',
    check: (text) => {
      const [, volume = ''] = /catalog-mirror_(\S+)$/.exec(text) ?? [];
      if (!Object.hasOwn(compose.volumes, volume)) throw new Error(`not in docker-compose.yml: ${text}`);
    },
  },
  { like: /\bdocker compose\b/, because: 'needs a container engine', check: checkCompose },
  {
    like: /^catalog-mirror .*--env-file mirror\.env/,
    because: 'reads a file of the reader; test/cli/config.e2e.test.ts does it',
    check: (text) => callsIn(text).forEach(checkCall),
  },
  {
    like: /^docker (?:build|buildx build|run) /,
    because: 'needs a container engine; .ci/image tries it with one',
    check: () => {},
  },
  { like: /^npm ci\b/, because: 'installs', check: checkScripts },
  {
    like: /^npm install /,
    because: 'installs; test/package/pack.e2e.test.ts does it',
    check: (text) => {
      if (!text.includes(`./catalog-mirror-${version}.tgz`)) throw new Error('not what npm pack makes');
    },
  },
  {
    like: /^(?:SEED=\d+ )?npm (?:test|run (?:check|test:quick|test:long|test:soak|test:histories|test:mutants|test:postgres|bench|migration|dashboard|docs|format|build|sbom)\b)/,
    because: 'is the tests, takes minutes, or writes files of the repository',
    check: checkScripts,
  },
  {
    like: /^(?:npm start$|npm run demo|npm start -- (?:sandbox|demo)|catalog-mirror (?:run|sandbox|demo)\b|\S+ (?:-- )?status --watch)/,
    because: 'goes on until it is stopped, or fills a whole mirror',
    check: () => {},
  },
  {
    like: /^pg_dump /,
    because: 'wants the pg_dump of the server',
    check: (text) => {
      const schemas = [...text.matchAll(/--schema=(\S+)/g)].map(([, schema]) => schema);
      if (schemas.join(' ') !== 'catalog catalog_internal') throw new Error('not both schemas');
    },
  },
  {
    like: /^pg_restore /,
    because:
      'wants the pg_restore of the server; test/migrations/roles.pg.test.ts has what is left to do after it',
    check: (text) => {
      if (!text.includes('--no-owner')) throw new Error('the dump names the owner that it had');
    },
  },
  {
    like: /^catalog-mirror migrate --adopt-account/,
    because: 'wants all daemons stopped; test/e2e/strange-databases.e2e.test.ts does it',
    check: () => {},
  },
  {
    like: /^catalog-mirror export /,
    because: 'writes files into the folder of the reader; test/cli/export.e2e.test.ts does it',
    check: (text) => callsIn(text).forEach(checkCall),
  },
  {
    like: /^catalog-mirror follow(?:$| .*--webhook)/,
    because: 'goes on until it is stopped, or needs a receiver; test/follow does both',
    check: (text) => callsIn(text).forEach(checkCall),
  },
  { like: /completion zsh/, because: 'is for zsh; test/cli/completion.test.ts loads it', check: () => {} },
];

export const howRun = ({ text }: Line) => NOT_RUN.find(({ like }) => like.test(text));

const BLOCKS = codeBlocks('sh').map((block) => ({ block, lines: linesOf(block) }));

/** Every command of the documents. */
export const LINES: readonly Line[] = BLOCKS.flatMap(({ lines }) => lines);

/** Blocks whose lines depend on earlier ones (a folder, a variable, a function); they are run as a whole. */
const WHOLE = BLOCKS.filter(
  ({ block, lines }) =>
    /^(?:cd |\w+=|\w+\(\) \{)/m.test(block.text) && lines.every((line) => howRun(line) === undefined),
);
export const SCRIPTS: readonly CodeBlock[] = WHOLE.map(({ block }) => block);

/** Commands that are run one by one. */
export const SINGLE: readonly Line[] = BLOCKS.filter((each) => !WHOLE.includes(each))
  .flatMap(({ lines }) => lines)
  .filter((line) => howRun(line) === undefined);
