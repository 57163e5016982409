import { faultsOf, type Mutant } from './mutant.ts';

const FILE = ['test/config-env-file.test.ts'];
const SHOWN = ['test/config-effective.test.ts'];

/** Each has settings come from somewhere else than they should, or a secret shown. */
export const ENVIRONMENT: readonly Mutant[] = [
  ...faultsOf(
    'src/config/env-file.ts',
    FILE,
    [
      'env-file: an empty variable of the environment is none',
      'if (isThere(env, name) || isElsewhere)',
      'if (env[name] || isElsewhere)',
    ],
    [
      'env-file: a secret in a file of the environment is not seen',
      ' || isElsewhere) continue;',
      ') continue;',
    ],
    ['env-file: two ways of a secret stay', 'added.delete(other);', 'void other;'],
    [
      'env-file: an empty line takes a secret away',
      "value !== '' && other !== undefined",
      'other !== undefined',
    ],
    ['env-file: a quote may stay open', 'value.length > 1 && value.endsWith(quote)', 'value.length > 0'],
  ),
  ...faultsOf('src/cli/env-file.ts', FILE, [
    'env-file: words behind -- are options',
    'end < 0 || at < end',
    'true',
  ]),
  ...faultsOf(
    'src/config/effective.ts',
    SHOWN,
    ['config: parameters of a connection are shown', 'PLAIN_PARAMETERS.test(name) ? pair', 'true ? pair'],
    [
      'config: a password with an @ is cut at the first',
      "authority.lastIndexOf('@')",
      "authority.indexOf('@')",
    ],
    [
      'config: a login that was not encoded is shown',
      "if (`${path}${query ?? ''}`.includes('@')) return MASK;",
      '',
    ],
    [
      'config: a secret is shown',
      'maskConnection(read.read()) : MASK',
      'maskConnection(read.read()) : read.read()',
    ],
    [
      'config: what is wrong is shown, whatever it is',
      '!rule.safeParse(value).success && /[@?]/.test(value)',
      'false',
    ],
    ['config: a token in a URL is a user', ': MASK,\n    )', ': login,\n    )'],
  ),
];
