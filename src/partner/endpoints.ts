/** Methods and paths of the partner's API routes (partner rules 4). The SKU follows the path of `lowest`. */
export const ENDPOINTS = {
  manifest: { method: 'GET', path: '/partner/catalog/manifest' },
  delta: { method: 'GET', path: '/partner/catalog/delta' },
  bulk: { method: 'POST', path: '/partner/lowest/bulk' },
  lowest: { method: 'GET', path: '/partner/lowest' },
} as const;

export type Endpoint = keyof typeof ENDPOINTS;
