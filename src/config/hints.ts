import { type Environment, given } from './environment.ts';

/** Edits (insert, delete, replace) from one name to the other. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

const OUR_PREFIX = /^(?:PARTNER|BULK|SWEEP|DEFERRED|MANIFEST)_/;

/** Names in the environment that are none of ours but were probably meant to be. Values are not looked at. */
export function unknownNames(
  env: Environment,
  variables: readonly { readonly name: string; readonly secret: boolean }[],
): string[] {
  const known = variables.flatMap(({ name, secret }) => (secret ? [name, `${name}_FILE`] : [name]));
  return Object.keys(env)
    .filter((name) => given(env, name) !== undefined && !known.includes(name))
    .flatMap((name) => {
      if (known.includes(name.replace(/_FILE$/, '')))
        return [`${name} is ignored: this variable cannot be given as a file`];
      const nearest = known.find((candidate) => distance(name, candidate) <= (candidate.length > 9 ? 2 : 1));
      if (nearest !== undefined)
        return [`${name} is not a variable of catalog-mirror and is ignored; did you mean ${nearest}?`];
      return OUR_PREFIX.test(name) ? [`${name} is not a variable of catalog-mirror and is ignored`] : [];
    });
}
