import { CONTROL_ROUTES } from './control/routes.ts';
import { expectedPayout } from './orders/order.ts';
import { lineOf } from './requests.ts';
import { bytesReply, type Reply } from './respond.ts';
import type { RouteDefinition, Services } from './routing.ts';
import type { Example } from './try-it.ts';

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { margin: 2rem auto; max-width: 90rem; padding: 0 1rem }
section { overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #8884; padding: .4rem .8rem .4rem 0; text-align: left; vertical-align: top }
.routes td:nth-child(2) { white-space: nowrap }
code { font: 12px/1.5 ui-monospace, monospace; overflow-wrap: anywhere }
.first { display: block }`;

const ORDERS_SHOWN = 15;
const LISTINGS_SHOWN = 10;
const INTAKE_SHOWN = 5;
const REQUESTS_SHOWN = 20;

/** Creates the sandbox's page: state, contents, and for every route a curl line that works. Shows its credential. */
export function pageOf(services: Services, routes: readonly RouteDefinition[]): Reply {
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>catalog-mirror sandbox</title>
<style>${STYLE}
</style>
<h1>catalog-mirror sandbox</h1>
<p>${factsOf(services).join('<br>\n')}</p>
${ordersOf(services)}
${listingsOf(services)}
${intakeOf(services)}
${requestsOf(services)}
<h2>Routes of the partner API</h2>
${table(
  ['Method', 'Path', 'What it does', 'Cache-Control', 'Try it'],
  routes.map((route) => routeCells(services, route)),
  'routes',
)}
<h2>Control routes</h2>
<p>They move the sandbox itself: no credential, not counted. ${controlNote(services)}</p>
${table(
  ['Method', 'Path', 'What it does', 'Try it'],
  CONTROL_ROUTES.map((route) => controlCells(services, route)),
  'routes',
)}
</html>
`;
  return bytesReply('text/html; charset=utf-8', Buffer.from(html), services.settings.now(), {
    'Cache-Control': 'no-store',
    'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'",
  });
}

function factsOf({ settings, account, base, gate, world, faults }: Services): string[] {
  const now = settings.now();
  const { limit, left } = gate.budget(now);
  const clock = settings.startAt === null ? '' : ' and stands until POST /sandbox/clock moves it';
  const servable = world.servable();
  const catalog = typeof servable === 'string' ? `answers ${servable}` : `is at snapshot ${servable.id}`;
  return [
    `Base address <code>${escapeHtml(base)}</code>, seed ${settings.seed}. It is ${new Date(now).toISOString()}${clock}.`,
    `The catalog ${catalog}.`,
    `All routes of the API share one limit: ${left} of ${limit} requests are left in the present ${settings.rateWindowMs / 1000} s.`,
    `Vacation mode is ${onOff(account.vacation)}, seller shipping ${onOff(account.sellerShipping)}, the account ` +
      `is ${gate.authorizer.configured ? '' : 'not '}configured.`,
    ordersRule(settings),
    `Faults armed: ${[...faults].length}.`,
    'This page and the presigned files need no credential and are not counted.',
  ];
}

function ordersRule({ autoConfirm, confirmDeadlineMs }: Services['settings']): string {
  if (autoConfirm) return 'Orders move on without a confirmation.';
  const deadline =
    confirmDeadlineMs === null ? '' : `, and fail after ${confirmDeadlineMs / 60_000} min without one`;
  return `Orders in process and pre_order wait for their confirmation${deadline}.`;
}

function ordersOf({ orders }: Services): string {
  const own = [...orders].filter((order) => order.own);
  const rows = own
    .slice(-ORDERS_SHOWN)
    .toReversed()
    .map((order) => [
      order.id,
      order.status,
      `${order.sku} ${order.size}`,
      String(order.price),
      String(expectedPayout(order)),
      order.confirmBy === null ? '' : new Date(order.confirmBy).toISOString(),
      order.tracking?.number ?? '',
    ]);
  const heads = ['Order', 'Status', 'What', 'Price', 'Payout', 'To be confirmed by', 'Tracking'];
  return section('Orders', own.length, heads, rows);
}

function listingsOf({ listings }: Services): string {
  const own = [...listings].filter((listing) => listing.own);
  const rows = own
    .slice(-LISTINGS_SHOWN)
    .toReversed()
    .map(({ id, listingType, sku, size, price, quantity }) => [
      id,
      listingType,
      `${sku} ${size}`,
      String(price),
      String(quantity),
    ]);
  return section('Live listings', own.length, ['Listing', 'Type', 'What', 'Price', 'Quantity'], rows);
}

function intakeOf({ intake }: Services): string {
  const records = [...intake];
  const rows = records
    .slice(-INTAKE_SHOWN)
    .toReversed()
    .map(({ sku, size, price, quantity }) => [
      sku,
      ...[size, price, quantity].map((value) => JSON.stringify(value) ?? ''),
    ]);
  return section('Intake', records.length, ['SKU', 'Size', 'Price', 'Quantity'], rows);
}

function requestsOf({ log }: Services): string {
  const records = log.ofClients();
  const rows = records
    .slice(-REQUESTS_SHOWN)
    .toReversed()
    .map((record) => [lineOf(record)]);
  return section('Requests', records.length, ['Arrived, method, path, answer, body'], rows);
}

/** Creates a heading with the total, and a table of the newest rows. */
function section(name: string, total: number, heads: readonly string[], rows: readonly string[][]): string {
  const count = rows.length < total ? `the newest ${rows.length} of ${total}` : String(total);
  const cells = rows.map((row) => row.map((cell) => `<code>${escapeHtml(cell)}</code>`));
  return `<section><h2>${name} (${count})</h2>\n${rows.length === 0 ? '' : table(heads, cells)}</section>`;
}

/** Creates a table of HTML cells. */
function table(heads: readonly string[], rows: readonly (readonly string[])[], kind = 'rows'): string {
  const lines = rows.map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`);
  return `<table class="${kind}">\n<tr><th>${heads.join('<th>')}</tr>\n${lines.join('\n')}\n</table>`;
}

function routeCells(services: Services, route: RouteDefinition): string[] {
  const example = route.example?.(services) ?? {};
  return [
    route.method,
    `<code>${escapeHtml(route.path)}</code>`,
    escapeHtml(route.summary),
    escapeHtml(route.cacheControl ?? '–'),
    tryIt(services, { method: route.method, path: route.path, isFile: route.origin === 'files' }, example),
  ];
}

function controlCells(services: Services, route: (typeof CONTROL_ROUTES)[number]): string[] {
  return [
    route.method,
    `<code>${escapeHtml(route.path)}</code>`,
    escapeHtml(route.summary),
    tryIt(services, route, route.example?.(services) ?? {}),
  ];
}

function tryIt(
  services: Services,
  route: { readonly method: string; readonly path: string; readonly isFile?: boolean },
  { target = route.path, body, first }: Example,
): string {
  const line = first === undefined ? curlOf(services, { ...route, target, body }) : curlOf(services, first);
  const note =
    first === undefined ? '' : '<span class="first">There is none yet. This makes one; then reload:</span>';
  return `${note}<code>${escapeHtml(line)}</code>`;
}

/** Formats a request as a shell command. */
function curlOf(
  { settings, secret, base }: Services,
  call: {
    readonly method: string;
    readonly target: string;
    readonly body?: object | undefined;
    readonly isFile?: boolean;
  },
): string {
  const words = ['curl'];
  if (call.isFile === true) words.push('-O');
  if (call.target.startsWith('/partner/')) words.push('-u', quote(`${settings.apiKey}:${secret}`));
  if (call.target.startsWith('/sandbox/') && settings.controlToken !== null)
    words.push('-H', '"Authorization: Bearer $CONTROL_TOKEN"');
  if (call.method !== 'GET') words.push('-X', call.method);
  if (call.body !== undefined)
    words.push('-H', quote('Content-Type: application/json'), '-d', quote(JSON.stringify(call.body)));
  return [...words, quote(base + call.target)].join(' ');
}

function controlNote({ settings }: Services): string {
  if (settings.controlToken !== null) return 'They need the token of <code>--control-token</code>.';
  return 'They answer this machine only; start the sandbox with <code>--control-token</code> to control it from elsewhere.';
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
