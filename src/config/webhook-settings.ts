import { either, secretText, timer } from './rules.ts';
import type { Setting } from './setting.ts';

const secret = () =>
  secretText(
    'whsec_ and 24 to 64 random bytes in base64, as of `echo whsec_$(openssl rand -base64 32)`',
    /^whsec_[A-Za-z0-9+/]{32,86}={0,2}$/,
  );

/** The settings of `catalog-mirror follow --webhook`. */
export const WEBHOOK_SETTINGS = {
  WEBHOOK_SECRET: {
    path: 'webhook.secret',
    rule: secret(),
    unset: 'none',
    secret: true,
    meaning:
      'secret that `follow --webhook` signs with, as Standard Webhooks has it: `whsec_` and base64. Its file is ' +
      'read again before each delivery',
  },
  WEBHOOK_SECRET_PREVIOUS: {
    path: 'webhook.previousSecret',
    rule: secret(),
    unset: 'none',
    secret: true,
    meaning: 'a second secret that is signed with, too, while receivers change from it to WEBHOOK_SECRET',
  },
  WEBHOOK_ALLOW_PRIVATE: {
    path: 'webhook.allowPrivate',
    rule: either('true', 'false'),
    default: 'false',
    meaning:
      'lets `follow --webhook` post to this machine and to private networks (100.64.0.0/10 is one, too), there also over plain http; ' +
      'link-local addresses and metadata services are never called',
  },
  WEBHOOK_TIMEOUT: {
    path: 'webhook.timeoutMs',
    rule: timer(),
    default: '20s',
    meaning: 'timeout of one delivery of `follow --webhook`',
  },
} as const satisfies Readonly<Record<string, Setting>>;
