import { faultsOf, type Mutant } from './mutant.ts';

const WAY = ['test/partner/proxy.test.ts'];
const ADDRESSES = ['test/partner/proxy-addresses.test.ts'];
const EXCEPTIONS = ['test/partner/no-proxy.test.ts'];
const SETTINGS = ['test/config-proxy.test.ts'];

/**
 * Faults that send something past, to or through the proxy that should not go there, or mistake its answers for
 * the partner's.
 */
export const PROXIES: readonly Mutant[] = [
  ...faultsOf(
    'src/partner/tunnel.ts',
    WAY,
    ['proxies: any answer is an open tunnel', 'statusCode >= 200 && statusCode < 300', 'statusCode >= 200'],
    ['proxies: a silent one is waited for', 'sent.destroy(silent(proxy, timeoutMs))', 'undefined'],
    [
      'proxies: its login is not sent',
      'if (proxy.authorization !== null)',
      'if (proxy.authorization === null)',
    ],
    [
      'proxies: TLS ends at the proxy',
      "if (target.protocol === 'https:') connectTls",
      "if (target.protocol === 'no:') connectTls",
    ],
    [
      'proxies: what it did is not said',
      'if (error instanceof ProxyError) return {',
      'if (error === null) return {',
    ],
  ),
  ...faultsOf('src/partner/transport.ts', WAY, [
    'proxies: closing leaves a silent one',
    'this.#closing.abort();',
    '',
  ]),
  ...faultsOf('src/partner/errors.ts', WAY, [
    'proxies: a silent one is no timeout',
    "  'ERR_PROXY_TIMEOUT',\n",
    '',
  ]),
  ...faultsOf('src/partner/manifest-file.ts', ADDRESSES, [
    'proxies: it is handed private addresses',
    'check: (host) => refuseResolved(host, reach, options.resolve),',
    '',
  ]),
  ...faultsOf('src/partner/origin.ts', ADDRESSES, [
    'proxies: names unknown here are refused',
    'if (error?.code === ADDRESS_REFUSED) refuse(error);',
    'if (error) refuse(error);',
  ]),
  ...faultsOf(
    'src/partner/proxy.ts',
    EXCEPTIONS,
    ['proxies: a suffix needs no dot', 'host.endsWith(`.${suffix}`)', 'host.endsWith(suffix)'],
    ['proxies: NO_PROXY knows no ports', 'if (at !== undefined && at !== port) return false;', ''],
    [
      'proxies: one scheme stands in for the other',
      ': settings?.http) ?? null',
      ': settings?.http) ?? settings?.http ?? null',
    ],
  ),
  ...faultsOf(
    'src/config/secrets.ts',
    SETTINGS,
    [
      'proxies: the login as it is sent is no secret',
      "proxy.authorization.slice('Basic '.length), ...names",
      '...names',
    ],
    ['proxies: a token is no secret', "password === '' ? [username, decoded(username)] : []", '[]'],
  ),
  ...faultsOf('src/config/environment.ts', SETTINGS, [
    'proxies: upper case goes first',
    'env[SHARED.get(name) ?? name] || env[name]',
    'env[name] || env[SHARED.get(name) ?? name]',
  ]),
  ...faultsOf('src/config/environment.ts', SETTINGS, [
    'proxies: a problem names the other spelling',
    'return env[lower] ? lower : name;',
    'return name;',
  ]),
  ...faultsOf(
    'src/cli/healthcheck.ts',
    ['test/security/http-healthcheck.e2e.test.ts'],
    [
      'proxies: healthcheck goes through one',
      'request(url, { signal, dispatcher })',
      'request(url, { signal })',
    ],
  ),
  ...faultsOf('src/config/effective.ts', SETTINGS, [
    'proxies: a token is shown',
    'isToken ? MASK : login',
    'login',
  ]),
  ...faultsOf('src/config/environment.ts', SETTINGS, [
    'proxies: a file outdoes the environment',
    'inOneSpelling(spelt)',
    'spelt',
  ]),
];
