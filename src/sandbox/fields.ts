/** What a member of a request's body may have to be. A question mark: it may be left out. */
const KINDS = {
  text: { fits: isText, must: 'must be a string that is not empty' },
  'text?': { fits: isText, must: 'must be a string that is not empty' },
  whole: { fits: Number.isInteger, must: 'must be a whole number' },
  'count?': {
    fits: (value: unknown) => Number.isInteger(value) && (value as number) > 0,
    must: 'must be a whole number above 0',
  },
} as const;

interface Values {
  text: string;
  'text?': string | undefined;
  whole: number;
  'count?': number | undefined;
}

type Kind = keyof Values;

/** The asked members of a JSON object, or what is wrong with the first that does not fit. Other members are ignored. */
export function readFields<Asked extends Record<string, Kind>>(
  value: unknown,
  asked: Asked,
): { [Name in keyof Asked]: Values[Asked[Name]] } | string {
  if (typeof value !== 'object' || value === null) return 'must be a JSON object';
  const fields: Record<string, unknown> = {};
  for (const [name, kind] of Object.entries(asked)) {
    const given: unknown = Object.hasOwn(value, name) ? value[name as keyof typeof value] : undefined;
    if (given === undefined && kind.endsWith('?')) continue;
    if (!KINDS[kind].fits(given)) return `${name} ${KINDS[kind].must}`;
    fields[name] = given;
  }
  return fields as { [Name in keyof Asked]: Values[Asked[Name]] };
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}
