import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';

/* Importing an entry of the package loads little, starts nothing and reads no environment. */

const SRC = resolve(import.meta.dirname, '../../src');

/** Returns the files of src that an entry loads, without type imports and exports, which are erased. */
function loads(entry: string): string[] {
  const found = new Set<string>();
  const visit = (file: string) => {
    if (found.has(file)) return;
    found.add(file);
    const text = readFileSync(file, 'utf8');
    for (const [, type, names = '', target = ''] of text.matchAll(
      /^(?:import|export) (type )?(?:([^;']*?) from )?'(\.[^']+)';/gms,
    )) {
      const isErased = type !== undefined || /^\{(?:\s*type [^,}]*,?)*\s*\}$/.test(names.trim());
      if (!isErased) visit(resolve(dirname(file), target));
    }
  };
  visit(join(SRC, `client/${entry}.ts`));
  return [...found].map((file) => relative(SRC, file)).toSorted();
}

test.each([
  ['types', /^client\/types\.ts$/],
  ['schema', /^(?:client\/schema|store\/schema\/(?:catalog|views)|declared\/metadata)\.ts$/],
  [
    'follow',
    /^(?:client\/[\w-]+|store\/connection\/(?:dropped-sessions|own-session|sql-errors)|lib\/(?:clock|connection-url|errors|host-name|json|tls))\.ts$/,
  ],
  ['sandbox', /^(?:client\/sandbox\.ts|sandbox\/)/],
])('%s loads nothing that it does not need', (entry, allowed) => {
  expect(loads(entry).filter((file) => !allowed.test(file))).toEqual([]);
});

test.each(['follow', 'sandbox', 'schema', 'types'])('%s starts nothing and reads no environment', (entry) => {
  const script = `
    const read = [];
    const env = process.env;
    process.env = new Proxy(env, { get: (of, name) => { read.push(String(name)); return of[name]; } });
    await import(${JSON.stringify(join(SRC, `client/${entry}.ts`))});
    process.env = env;
    const ours = read.filter((name) => /^(?:PARTNER|DATABASE|REDIS|MIRROR|HTTP|LOG)_/.test(name));
    console.log(JSON.stringify({ ours, active: process.getActiveResourcesInfo().filter((name) => !/Pipe|TTY|Close|FSReq/.test(name)) }));`;
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
  });
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  expect(JSON.parse(stdout)).toEqual({ ours: [], active: [] });
});
