import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { backends, createStack } from '../support/stack.ts';

test.concurrent.each(backends())(
  'queues in %s: every session is named as the mirror’s, whatever DATABASE_URL calls it',
  async (backend) => {
    await using stack = await createStack({ backend, sandbox: { skus: 60, seed: 163 } });
    const url = new URL(stack.databaseUrl);
    url.searchParams.set('application_name', 'our shop');
    const app = await stack.start({ DATABASE_URL: url.href });
    const names = async () => {
      const rows = await stack.sql<{ name: string }[]>`
        select distinct application_name as name from pg_stat_activity
        where datname = current_database() and application_name ~ 'shop'`;
      return rows.map(({ name }) => name);
    };
    await eventually(async () =>
      expect(await names()).toEqual(
        expect.arrayContaining([
          'catalog-mirror (our shop)',
          'catalog-mirror instance (our shop)',
          ...(backend === 'postgres' ? ['catalog-mirror queues (our shop)'] : []),
        ]),
      ),
    );
    for (const name of await names()) expect(name).toMatch(/^catalog-mirror/);
    await app.stop();
  },
);
