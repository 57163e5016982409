import { OPEN } from '../../test/conformance/open.ts';
import { ROWS } from '../../test/conformance/rows.ts';
import type { Blocks } from './marked.ts';
import { table } from './table.ts';

/** The section that an id of a rule is in: 2, 4 and 7 have sections of their own. */
export function sectionOf(id: string): string {
  return /^(?:[247]\.)?\d/.exec(id)?.[0] ?? id;
}

/** An id, and the anchor that links to it: `#rule-` and the id. */
const anchored = (id: string) => `<a id="rule-${id}"></a>${id}`;

/** A table of rules for each section of docs/partner-rules.md, and one of what is left open. */
export function ruleBlocks(): Blocks {
  const sections = Map.groupBy(Object.entries(ROWS), ([id]) => sectionOf(id));
  const rules = [...sections].map(([section, rows]) => [
    `rules of section ${section}`,
    table(
      ['rule', 'says'],
      rows.map(([id, words]) => [anchored(id), words]),
    ),
  ]);
  const open = Object.entries(OPEN).map(([id, { unknown, handling }]) => [anchored(id), unknown, handling]);
  return {
    ...Object.fromEntries(rules),
    'what is left open': table(['id', 'not documented', 'this program'], open),
  };
}
