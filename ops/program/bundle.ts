import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { type OutputAsset, type OutputChunk, type Plugin, rolldown } from 'rolldown';

const ROOT = join(import.meta.dirname, '../..');
const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  exports: Record<string, string | { default: string }>;
};
/** What other programs import, by package.json: `client/follow` and the like. */
export const ENTRIES: readonly string[] = Object.values(exports).flatMap((target) =>
  typeof target === 'string' ? [] : [target.default.replace(/^\.\/dist\/(.*)\.js$/, '$1')],
);

/** All that is not a file of ours. */
export const PACKAGES = (id: string): boolean => !/^[./]/.test(id);

const MAIN = './main.js';
/** `bin` loads the program by its name, once it knows that this Node.js can read it. */
const MAIN_BY_NAME: Plugin = {
  name: 'main-by-name',
  resolveId: (id) => (id === './main.ts' ? { id: MAIN, external: true } : null),
};

/**
 * Writes programs, each with the files that it needs, into a folder. What several of them need, or need only at times, is in files
 * of its own.
 *
 * @param input their files, relative to the repository, by their paths in the folder, without extension
 * @param external what they import where they run; everything else becomes part of them
 * @returns the folders of the packages that became part of them
 */
export async function bundle(
  input: Readonly<Record<string, string>>,
  dir: string,
  external: (id: string) => boolean = () => false,
): Promise<string[]> {
  const bundled = await rolldown({
    input: { ...input },
    cwd: ROOT,
    platform: 'node',
    plugins: [MAIN_BY_NAME],
    // What packages in the form of CommonJS take for granted.
    transform: { define: { __dirname: 'import.meta.dirname', __filename: 'import.meta.filename' } },
    external,
    // Of other people's packages, which work as they are.
    logLevel: 'silent',
  });
  // Names without hashes, so that a line of a stack trace says which file it means, in every version.
  const { output } = await bundled.write({ dir, format: 'es', chunkFileNames: 'parts/[name].js' });
  await bundled.close();
  refuseMissing(output, (id) => isBuiltin(id) || id === MAIN || external(id));
  const files = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
  const folders = files.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []);
  return [...new Set(folders)].toSorted();
}

/** The licences of packages, as whoever passes them on has to: of each its name, version and every text of that kind. */
export function licencesOf(packages: readonly string[]): string {
  const texts = packages.map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      name: string;
      version: string;
      license?: string;
    };
    const files = readdirSync(folder).filter((file) => /^(?:licen[cs]e|notice|copying)/i.test(file));
    const found = files.map((file) => readFileSync(join(folder, file), 'utf8').trim());
    return [`${name} ${version}: ${license ?? 'see below'}`, ...found].join('\n\n');
  });
  return `${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

/** Throws where something is neither in what was written nor there where it runs: the bundler itself leaves it out without a word. */
function refuseMissing(
  output: readonly (OutputChunk | OutputAsset)[],
  isThere: (id: string) => boolean,
): void {
  const chunks = output.filter((file) => file.type === 'chunk');
  const written = new Set(chunks.map(({ fileName }) => fileName));
  const imported = new Set(chunks.flatMap((chunk) => [...chunk.imports, ...chunk.dynamicImports]));
  const missing = [...imported].filter((id) => !written.has(id) && !isThere(id));
  if (missing.length > 0) throw new Error(`not found: ${missing.join(', ')}`);
}
