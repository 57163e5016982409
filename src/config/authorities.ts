import tls from 'node:tls';
import { errorCode } from '../lib/errors.ts';

/* Certificate authorities of variables that Node.js reads only at its own start, for values that are known later. */

const EXTRA = 'NODE_EXTRA_CA_CERTS';
const SYSTEM_CA = 'NODE_USE_SYSTEM_CA';

const CERTIFICATE = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----/;

/**
 * Trusts the authorities that these variables name (`valueOf`; '' if not given), besides those trusted already. Returns
 * the first variable that fails. Node.js itself would carry on, until connections fail for their certificates.
 */
export function trustAlso(
  valueOf: (variable: string) => string,
  readFile: (path: string) => string,
): { readonly variable: string; readonly expected: string } | null {
  const path = valueOf(EXTRA);
  const ofSystem = valueOf(SYSTEM_CA) === '1';
  if (path === '' && !ofSystem) return null;
  const variable = path === '' ? SYSTEM_CA : EXTRA;
  // Requires Node.js 24.5 or newer.
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
