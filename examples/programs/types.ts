import type { CurrentPriceRow, StatusPageJson } from 'catalog-mirror/types';
import postgres from 'postgres';

const sql = postgres(process.env['DATABASE_URL'] ?? '');
const rows = await sql<CurrentPriceRow[]>`select * from catalog.current_prices order by price limit 1`;
for (const { sku, size, price, size_type, doubt } of rows)
  console.log(`${sku} ${size_type} ${size}: ${price} THB${doubt === null ? '' : ` (${doubt})`}`);
await sql.end();

const page = process.env['STATUS_URL'];
if (page !== undefined) {
  const status = (await (await fetch(page)).json()) as StatusPageJson;
  console.log(status.state, status.reasons.map(({ text }) => text).join('; '));
}
