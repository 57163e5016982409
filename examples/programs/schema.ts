import { currentPrices } from 'catalog-mirror/schema';
import { and, eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';

const client = postgres(process.env['DATABASE_URL'] ?? '');
const { sku, size, price, pRight, actionable } = currentPrices;
const rows = await drizzle(client)
  .select({ sku, size, price, pRight })
  .from(currentPrices)
  .where(and(eq(sku, process.env['SKU'] ?? 'DD1391-100'), eq(actionable, true)));
console.log(JSON.stringify(rows));
await client.end();
