import { bytesReply, type Reply } from './respond.ts';
import type { RouteDefinition } from './routing.ts';
import type { Services } from './services.ts';

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
