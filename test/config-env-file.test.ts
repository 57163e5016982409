import { describe, expect, test } from 'vitest';
import { UsageError } from '../src/cli/command.ts';
import { takeEnvFiles } from '../src/cli/env-file.ts';
import { trustAlso } from '../src/config/authorities.ts';
import { addedByFiles, backslashWarnings, parseEnvFile, readEnvFiles } from '../src/config/environment.ts';

const valuesOf = (text: string) => Object.fromEntries(parseEnvFile(text).values);

describe('an environment file', () => {
  test.each([
    ['A=1', { A: '1' }],
    ['\uFEFFA=1\r\nB=2\r\n', { A: '1', B: '2' }],
    ['# A=1\n\n  #B=2\n', {}],
    [' A = 1 \nexport B=2', { A: '1', B: '2' }],
    ['A="1 2"\nB=\'3\'\nC=""', { A: '1 2', B: '3', C: '' }],
    ['A=', { A: '' }],
    ['A=a#b=c$d\\n', { A: 'a#b=c$d\\n' }],
    ['A=it"s', { A: 'it"s' }],
    ['A=1\nA=2', { A: '2' }],
  ])('is parsed: %j', (text, values) => {
    expect(valuesOf(text)).toEqual(values);
    expect(parseEnvFile(text).problems).toEqual([]);
  });

  test.each([
    ['A', 'line 1: expected NAME=value'],
    ['\n=1', 'line 2: expected NAME=value'],
    ['1A=canary', 'line 1: expected NAME=value'],
    ['A B=canary', 'line 1: expected NAME=value'],
    ['A="canary\nB=2', 'line 1: the quote around the value of A has no end in the line'],
    ["A='", 'line 1: the quote around the value of A has no end in the line'],
    ['A=can\0ary', 'line 1: the value of A has a NUL character'],
  ])('with an invalid line is rejected by its number, without its content: %j', (text, problem) => {
    expect(parseEnvFile(text).problems).toEqual([problem]);
  });

  test('that cannot be read is reported with the reason, next to the problems of the others', () => {
    const readFile = (path: string) => {
      if (path === 'good') return 'A=1\nB';
      throw Object.assign(new Error('no'), { code: { gone: 'ENOENT', folder: 'EISDIR' }[path] ?? 'EIO' });
    };
    const { files, problems } = readEnvFiles(['good', 'gone', 'folder', 'bad'], readFile);
    expect(files.map(({ path }) => path)).toEqual(['good']);
    expect(problems).toEqual([
      'good: line 2: expected NAME=value',
      'gone: there is no such file',
      'folder: it is a folder',
      'bad: EIO',
    ]);
  });
});

test("a backslash in a file's value is reported by its variable, because systemd reads it differently", () => {
  const env = { SECRET: String.raw`can\ary`, END: 'canary\\', PLAIN: 'a/b', OF_THE_SHELL: 'a\\b' };
  const fileOf = (name: string) => (name === 'OF_THE_SHELL' ? null : 'mirror.env');
  const found = backslashWarnings(env, fileOf);
  expect(found.map(({ variable }) => variable)).toEqual(['SECRET', 'END']);
  for (const { variable, text } of found) {
    expect(text).toContain(`${variable} of mirror.env has a backslash`);
    expect(text).not.toContain('ary');
  }
});

describe('what files add to the environment', () => {
  const added = (env: Record<string, string>, ...files: Record<string, string>[]) =>
    Object.fromEntries(
      [
        ...addedByFiles(
          env,
          files.map((values, at) => ({ path: `file ${at}`, values: new Map(Object.entries(values)) })),
          ['SECRET'],
        ),
      ].map(([name, { value, path }]) => [name, `${value} of ${path}`]),
    );

  test('is only what is not set there, not even to nothing', () => {
    expect(added({ A: 'x', B: '' }, { A: '1', B: '2', C: '3' })).toEqual({ C: '3 of file 0' });
  });

  test('comes from the last file that sets it', () => {
    expect(added({}, { A: '1', B: '1' }, { A: '2' })).toEqual({ A: '2 of file 1', B: '1 of file 0' });
  });

  test('leaves out a secret that the environment sets in the other form', () => {
    expect(added({ SECRET_FILE: '/run/s' }, { SECRET: 's' })).toEqual({});
    expect(added({ SECRET: 's' }, { SECRET_FILE: '/run/s' })).toEqual({});
    expect(added({ SECRET: '' }, { SECRET_FILE: '/run/s' })).toEqual({});
    expect(added({ SECRET_FILE: '' }, { SECRET: 's' })).toEqual({ SECRET: 's of file 0' });
    expect(added({ A_FILE: 'x' }, { A: '1' })).toEqual({ A: '1 of file 0' });
  });

  test('is only one form of a secret, the last one that is not empty', () => {
    expect(added({}, { SECRET: 's' }, { SECRET_FILE: '/run/s' })).toEqual({
      SECRET_FILE: '/run/s of file 1',
    });
    expect(added({}, { SECRET_FILE: '/run/s' }, { SECRET: '' })).toMatchObject({
      SECRET_FILE: '/run/s of file 0',
    });
  });
});

describe('--env-file', () => {
  test.each<[string[], string[], string[]]>([
    [['status', '--json'], ['status', '--json'], []],
    [['--env-file', 'a', 'status'], ['status'], ['a']],
    [
      ['status', '--env-file=a', '--json', '--env-file', 'b'],
      ['status', '--json'],
      ['a', 'b'],
    ],
    [['sql', '--', '--env-file', 'a'], ['sql', '--', '--env-file', 'a'], []],
  ])('is taken out of %j', (argv, rest, paths) => {
    expect(takeEnvFiles(argv)).toEqual({ rest, paths });
  });

  test.each([[['status', '--env-file']], [['--env-file=']], [['--env-file', '--json']]])(
    'is rejected without a file: %j',
    (argv) => {
      expect(() => takeEnvFiles(argv)).toThrow(UsageError);
    },
  );
});

describe('certificate authorities for Node.js', () => {
  const files: Record<string, string> = { '/no.pem': 'no certificate' };
  const readFile = (path: string) => {
    const text = files[path];
    if (text === undefined) throw Object.assign(new Error('none'), { code: 'ENOENT' });
    return text;
  };
  const trusting = (values: Record<string, string>) => trustAlso((name) => values[name] ?? '', readFile);

  test.each([
    ['/nowhere.pem', 'the path of a readable file of certificates in PEM (ENOENT)'],
    ['/no.pem', 'the path of a readable file of certificates in PEM'],
  ])('%s is rejected', (path, expected) => {
    expect(trusting({ NODE_EXTRA_CA_CERTS: path })).toEqual({ variable: 'NODE_EXTRA_CA_CERTS', expected });
  });

  test('nothing happens if none are named', () => {
    expect(trusting({ NODE_USE_SYSTEM_CA: '0', NODE_EXTRA_CA_CERTS: '' })).toBeNull();
  });
});
