import { bytesReply, type Reply } from './respond.ts';
import type { Example, RouteDefinition, Services } from './routing.ts';
import type { ListingType, OrderStatus } from './orders/order.ts';
import { createRng } from './rng.ts';

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { margin: 2rem auto; max-width: 90rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #8884; padding: .4rem .8rem .4rem 0; text-align: left; vertical-align: top }
code { font: 12px/1.5 ui-monospace, monospace; overflow-wrap: anywhere }`;

/** The page that lists the routes, each with a curl line that succeeds now. Shows the sandbox's own credential. */
export function pageOfRoutes(services: Services, routes: readonly RouteDefinition[]): Reply {
  const { settings, account, base } = services;
  const rows = routes.map((route) => {
    const cells = [
      route.method,
      `<code>${escapeHtml(route.path)}</code>`,
      escapeHtml(route.summary),
      escapeHtml(route.cacheControl ?? '–'),
      `<code>${escapeHtml(curlOf(services, route))}</code>`,
    ];
    return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
  });
  const facts = [
    `Base address <code>${escapeHtml(base)}</code>.`,
    `All routes of the API share one limit: ${settings.rateLimit} requests in any rolling ${settings.rateWindowMs / 1000} s.`,
    `Vacation mode is ${onOff(account.vacation)}, seller shipping ${onOff(account.sellerShipping)}.`,
    'This page and the presigned files need no credential and are not counted.',
  ];
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>catalog-mirror sandbox</title>
<style>${STYLE}
</style>
<h1>Routes of the sandbox</h1>
<p>${facts.join('<br>\n')}</p>
<table>
<tr><th>Method<th>Path<th>What it does<th>Cache-Control<th>Try it</tr>
${rows.join('\n')}
</table>
</html>
`;
  return bytesReply('text/html; charset=utf-8', Buffer.from(html), settings.now());
}

/** A request of the route as a shell takes it. */
function curlOf(services: Services, route: RouteDefinition): string {
  const { target = route.path, body } = route.example?.(services) ?? {};
  const words = ['curl'];
  if (route.origin === 'files') words.push('-O');
  if (route.origin === 'api') words.push('-u', quote(`${services.settings.apiKey}:${services.secret}`));
  if (route.method !== 'GET') words.push('-X', route.method);
  if (body !== undefined)
    words.push('-H', quote('Content-Type: application/json'), '-d', quote(JSON.stringify(body)));
  return [...words, quote(services.base + target)].join(' ');
}

function quote(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return text.replaceAll(/[&<>"]/g, (character) => entities[character] ?? character);
}

function onOff(on: boolean): string {
  return on ? 'on' : 'off';
}

const NOTHING = { sku: 'AB1234-567', size: '9', price: 1000 };

/** GET /partner/lowest/{sku} of a SKU that has prices. */
export function lowestExample(services: Services): Example {
  return { target: `/partner/lowest/${encodeURIComponent(goods(services).sku)}` };
}

/** POST /partner/lowest/bulk of a SKU that has prices. */
export function bulkExample(services: Services): Example {
  return { body: { [services.settings.dialect.bulkBodyKey]: [goods(services).sku] } };
}

/** GET /partner/catalog/delta since the newest snapshot. */
export function deltaExample({ world }: Services): Example {
  return { target: `/partner/catalog/delta?since=${encodeURIComponent(world.newestSnapshot() ?? '')}` };
}

/** A read below `prefix` of an order in `process`. */
export function orderExample(prefix: string): (services: Services) => Example {
  return (services) => ({ target: prefix + orderIn(services, 'process') });
}

/** PUT /partner/confirm/order of an order that may be confirmed. */
export function confirmExample(services: Services): Example {
  return { body: { order_id: orderIn(services, 'process') } };
}

/** PUT /partner/update/tracking of an order that was confirmed. */
export function trackingExample(services: Services): Example {
  const order_id = orderIn(services, 'matched');
  return { body: { orders: [{ order_id, tracking_number: 'TH0123456789', courier: 'Flash' }] } };
}

export function creationExample(services: Services): Example {
  return { body: { ...goods(services), quantity: 1 } };
}

export function editExample(listingType: ListingType): (services: Services) => Example {
  return ({ listings }) => {
    const listing = [...listings].find((found) => found.own && found.listingType === listingType);
    return { body: { order_id: listing?.id ?? 'L-000001', price: 1990 } };
  };
}

/** POST /partner/batch/r2s of a SKU that the catalog knows. */
export function intakeExample(services: Services): Example {
  return { body: { items: [{ ...goods(services), quantity: 2 }] } };
}

export function manifestFileExample({ settings, world, presigner }: Services): Example {
  const id = world.newestSnapshot();
  if (id === null) return {};
  return { target: presigner.sign(id, settings.now() + settings.urlTtlMs, world.urlGeneration) };
}

export function labelFileExample(services: Services): Example {
  const { settings, labels } = services;
  return { target: labels.sign(orderIn(services, 'process'), settings.now() + settings.urlTtlMs) };
}

function goods({ world }: Services): { sku: string; size: string; price: number } {
  return world.draw(createRng(1)) ?? NOTHING;
}

/** The account's oldest order in a state; where it has none, an id that may not exist. */
function orderIn({ orders }: Services, status: OrderStatus): string {
  return [...orders].find((order) => order.own && order.status === status)?.id ?? 'O-000001';
}
