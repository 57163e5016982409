import type { Config } from '../../config.ts';
import { blemishesOf, isBasicPair } from '../../config/blemishes.ts';
import { type Finding, ok, warn } from './finding.ts';

/** Signs of a credential damaged on its way. What no credential can hold has ended the start already, by name. */
export function checkCredential({ partner }: Pick<Config, 'partner'>): Finding[] {
  const [apiKey, secret] = [partner.apiKey.read(), partner.secret.read()];
  return Object.entries({ PARTNER_API_KEY: apiKey, PARTNER_SECRET: secret }).flatMap(([name, value]) => {
    const found = blemishesOf(value);
    if (isBasicPair(value, apiKey))
      found.push('looks like api_key and secret in base64: give only the secret');
    return found.length === 0
      ? [ok(name.toLowerCase(), 'is set and well-formed')]
      : [
          warn(
            name.toLowerCase(),
            found.join(' and '),
            `compare ${name} with the value that the partner gave you`,
          ),
        ];
  });
}
