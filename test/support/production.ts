import type { Environment } from '../../src/config/environment.ts';

/** A shell environment from which a daemon runs in production. */
export const PRODUCTION: Environment = {
  PARTNER_BASE_URL: 'https://partner.example.com',
  PARTNER_API_KEY_FILE: '/run/secrets/partner_api_key',
  PARTNER_SECRET_FILE: '/run/secrets/partner_secret',
  PARTNER_FILES_ORIGINS: 'https://files.example.com',
  PARTNER_MANIFEST_URL_FIELD: 'download',
  PARTNER_SNAPSHOT_ID_FIELD: 'version',
  PARTNER_BULK_BODY_KEY: 'items',
  PARTNER_PRICE_FIELDS: 'ask',
  PARTNER_SKU_FIELD: 'id',
  PARTNER_RATE_LIMIT: '5000',
  PARTNER_RATE_WINDOW: '1s',
  PARTNER_RATE_SHARE: '0.01',
  PARTNER_BACKOFF: '1h',
  https_proxy: 'http://proxy.example:3128',
  HTTP_PROXY_FILE: '/run/secrets/proxy',
  REDIS_URL: 'redis://127.0.0.1:1',
  REDIS_URL_FILE: '/run/secrets/redis',
  QUEUE_PREFIX: 'prod',
  MIRROR_SCOPE: 'scope',
  WEBHOOK_SECRET_FILE: '/run/secrets/webhook',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.example:4318',
  OTEL_EXPORTER_OTLP_HEADERS_FILE: '/run/secrets/otlp',
};
