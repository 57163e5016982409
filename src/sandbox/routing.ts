import type { Answer, Call, PlainCall } from './answer.ts';
import type { Reply } from './respond.ts';
import type { State } from './state.ts';
import type { Example } from './try-it.ts';

/** What handlers work on: the sandbox's state, and how this request reached it. */
export interface Services extends State {
  /** The sandbox's address as the client knows it, for presigned URLs. */
  readonly base: string;
  /** The present secret, for the page that shows example requests. */
  readonly secret: string;
}

/** One route: what dispatch, the routes page and the command's help know about it. */
export type RouteDefinition = ApiRoute | PlainRoute;

interface RouteBase {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** Parameters in braces stand for one segment each. */
  readonly path: string;
  readonly summary: string;
  /** Cache-Control of a successful answer (partner rules 8.cache); null if the header is absent. */
  readonly cacheControl: string | null;
  /** A request that succeeds now; absent if the path alone does. */
  readonly example?: (services: Services) => Example;
}

/** A route of the API: the request is counted and its credential checked before the handler sees it. */
export interface ApiRoute extends RouteBase {
  readonly origin: 'api';
  handle(services: Services, call: Call): Answer;
}

/** A presigned file, or the sandbox's own page: no credential, no count. */
interface PlainRoute extends RouteBase {
  readonly origin: 'files' | 'page';
  handle(services: Services, call: PlainCall): Reply;
}

/** Formats a route as a line of text. */
export function lineOfRoute({
  method,
  path,
  summary,
}: Pick<RouteBase, 'path' | 'summary'> & { readonly method: string }): string {
  return `${method.padEnd(7)}${path.padEnd(32)}${summary}`;
}

/** The route of a request, with its path's parameters as they came (still percent-encoded). */
export interface Match<Name> {
  readonly name: Name;
  readonly params: Readonly<Record<string, string>>;
}

/** Creates the matcher of a table of routes. A fixed path takes precedence over one with parameters. */
export function createMatcher<Name extends string>(
  table: Readonly<Record<Name, { readonly method: string; readonly path: string }>>,
): (method: string, path: string) => Match<Name> | null {
  const patterns = (Object.keys(table) as Name[])
    .map((name) => ({ name, method: table[name].method, ...compile(table[name].path) }))
    .toSorted((left, right) => left.parameters - right.parameters);
  return (method, path) => {
    for (const { name, method: own, pattern } of patterns) {
      const found = method === own ? pattern.exec(path) : null;
      if (found !== null) return { name, params: { ...found.groups } };
    }
    return null;
  };
}

function compile(path: string): { pattern: RegExp; parameters: number } {
  const parameters = path.split('{').length - 1;
  const source = path.replaceAll('.', String.raw`\.`).replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)');
  return { pattern: new RegExp(`^${source}$`), parameters };
}

/** Percent-decodes a match's parameters, or returns what is wrong with them. */
export function decodeParams(params: Readonly<Record<string, string>>): Record<string, string> | string {
  const decoded: Record<string, string> = {};
  for (const [name, raw] of Object.entries(params)) {
    try {
      decoded[name] = decodeURIComponent(raw);
    } catch {
      return `${name} is not a valid path segment`;
    }
  }
  return decoded;
}
