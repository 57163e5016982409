import pg from 'pg';
import { postgresConnection } from '../lib/tls.ts';

/** A connection of its own through the `pg` driver, not of the pool. Throws where Postgres does not answer or refuses. */
export async function connectAlone(databaseUrl: string, options: pg.ClientConfig): Promise<pg.Client> {
  const { url, ssl } = postgresConnection(databaseUrl);
  const client = new pg.Client({ connectionString: url, ssl, ...options });
  // An idle connection that breaks emits; the next statement reports it.
  client.on('error', () => {});
  await client.connect();
  return client;
}
