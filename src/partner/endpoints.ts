/** Where the routes of the partner's API are (partner rules 4); behind its path `lowest` has the SKU. */
export const ENDPOINTS = {
  manifest: { method: 'GET', path: '/partner/catalog/manifest' },
  delta: { method: 'GET', path: '/partner/catalog/delta' },
  bulk: { method: 'POST', path: '/partner/lowest/bulk' },
  lowest: { method: 'GET', path: '/partner/lowest' },
} as const;

export type Endpoint = keyof typeof ENDPOINTS;
