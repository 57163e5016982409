/** What stands between two markers of a document, by the markers' name. */
export type Blocks = Readonly<Record<string, string>>;

const MARKED =
  /^<!-- (?<name>[a-z0-9. ]+), written by `npm run docs` -->\n[\s\S]*?^<!-- end of \k<name> -->$/gm;

/** The names of the marked blocks in a document, in their order. */
export function markedIn(text: string): string[] {
  return [...text.matchAll(MARKED)].map(({ groups }) => groups?.['name'] ?? '');
}

/** A document with its marked blocks written anew. Throws where a marker names a block that there is not. */
export function rewritten(text: string, blocks: Blocks): string {
  return text.replace(MARKED, (_, name: string) => {
    const block = Object.hasOwn(blocks, name) ? blocks[name] : undefined;
    if (block === undefined) throw new Error(`no such block: ${name}`);
    return `<!-- ${name}, written by \`npm run docs\` -->\n${block}\n<!-- end of ${name} -->`;
  });
}
