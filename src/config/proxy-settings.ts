import { proxyExceptions, proxyUrl } from './rules.ts';
import type { Setting } from './setting.ts';

/** Proxies, by the names that other programs use. Upper and lower case are one variable (see `given`). */
export const PROXY_SETTINGS = {
  HTTPS_PROXY: {
    path: 'partner.proxy.https',
    rule: proxyUrl(),
    unset: 'direct',
    secret: true,
    connection: true,
    meaning:
      'proxy for the partner API and manifest files at https, such as `http://user:password@proxy.example:3128`. `https_proxy` goes first',
  },
  HTTP_PROXY: {
    path: 'partner.proxy.http',
    rule: proxyUrl(),
    unset: 'direct',
    secret: true,
    connection: true,
    meaning: 'the same for plain http, which only sandboxes speak. `http_proxy` goes first',
  },
  NO_PROXY: {
    path: 'partner.proxy.except',
    rule: proxyExceptions(),
    unset: 'none',
    meaning:
      'hosts that are connected to without a proxy, such as `files.example.com,.internal,10.0.0.0/8`; `*`: all. `no_proxy` goes first',
  },
} as const satisfies Readonly<Record<string, Setting>>;
