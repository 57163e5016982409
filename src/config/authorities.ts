import tls from 'node:tls';
import { errorCode } from '../lib/errors.ts';

/* Certificate authorities of variables that Node.js reads at its own start only, for those that are known later. */

const EXTRA = 'NODE_EXTRA_CA_CERTS';
const SYSTEM_CA = 'NODE_USE_SYSTEM_CA';

const CERTIFICATE = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----/;

/**
 * Trusts what these variables name (`valueOf`; '' where one is not given), beside what is trusted already. Returns the
 * first that cannot be done, where Node.js itself would go on, to connections that fail for their certificates.
 */
export function trustAlso(
  valueOf: (variable: string) => string,
  readFile: (path: string) => string,
): { readonly variable: string; readonly expected: string } | null {
  const path = valueOf(EXTRA);
  const ofSystem = valueOf(SYSTEM_CA) === '1';
  if (path === '' && !ofSystem) return null;
  const variable = path === '' ? SYSTEM_CA : EXTRA;
  // Node.js 24.5 and newer.
  if (!('setDefaultCACertificates' in tls))
    return {
      variable,
      expected: `it in the environment, which Node.js ${process.version} reads as it starts`,
    };
  try {
    const extra = path === '' ? [] : [certificatesIn(readFile(path))];
    const system = ofSystem ? tls.getCACertificates('system') : [];
    tls.setDefaultCACertificates([...tls.getCACertificates('default'), ...system, ...extra]);
    return null;
  } catch (error) {
    const code = errorCode(error);
    const why = code === null ? '' : ` (${code})`;
    return { variable, expected: `the path of a readable file of certificates in PEM${why}` };
  }
}

function certificatesIn(text: string): string {
  if (!CERTIFICATE.test(text)) throw new Error('no certificate');
  return text;
}
