import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: [
    './src/store/schema.ts',
    './src/store/schema-internal.ts',
    './src/store/schema-processes.ts',
    './src/store/schema-followers.ts',
    './src/store/schema-hints.ts',
    './src/store/schema-history.ts',
    './src/store/schema-identity.ts',
    './src/store/schema-live.ts',
    './src/store/schema-members.ts',
    './src/store/schema-refresh.ts',
    './src/store/schema-promises.ts',
    './src/store/schema-releases.ts',
    './src/store/schema-samples.ts',
    './src/store/schema-scope.ts',
    './src/store/schema-trust.ts',
  ],
  out: './drizzle',
  schemaFilter: ['catalog', 'catalog_internal'],
});
