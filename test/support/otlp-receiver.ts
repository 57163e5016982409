import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** A span as in OTLP's JSON, with its attributes as an object. */
export interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: number;
  /** Milliseconds since the epoch. */
  readonly from: number;
  readonly to: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly failed: boolean;
  readonly resource: Readonly<Record<string, unknown>>;
}

type Value = Readonly<Record<string, unknown>>;
interface OtlpAttribute {
  readonly key: string;
  readonly value: Value;
}
interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly OtlpAttribute[];
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status?: { readonly code?: number };
}
interface OtlpRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

const FAILED = 2;

function valueOf(value: Value): unknown {
  const [[kind, given] = []] = Object.entries(value);
  return kind === 'intValue' ? Number(given) : given;
}

const objectOf = (attributes: readonly OtlpAttribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]));

function spansOf({ resourceSpans }: OtlpRequest): SentSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans
      .flatMap(({ spans }) => spans)
      .map((span) => ({
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId,
        name: span.name,
        kind: span.kind,
        from: Number(BigInt(span.startTimeUnixNano) / 1000n) / 1000,
        to: Number(BigInt(span.endTimeUnixNano) / 1000n) / 1000,
        attributes: objectOf(span.attributes),
        links: span.links ?? [],
        failed: span.status?.code === FAILED,
        resource: objectOf(resource.attributes),
      })),
  );
}

/** How the receiver answers: it accepts spans, sends nothing, answers something that is not OTLP, or rejects. */
export type Manner = 'takes' | 'hangs' | 'garbage' | 'refuses';

export interface OtlpReceiver extends AsyncDisposable {
  readonly url: string;
  readonly spans: SentSpan[];
  readonly headers: IncomingMessage['headers'][];
  /** Bodies as received. */
  readonly bodies: string[];
  manner: Manner;
}

/** A collector of traces: OTLP over HTTP, in JSON. */
export async function startReceiver(manner: Manner = 'takes', onPort = 0): Promise<OtlpReceiver> {
  const receiver = { spans: [], headers: [], bodies: [], manner } as Pick<
    OtlpReceiver,
    'spans' | 'headers' | 'bodies' | 'manner'
  >;
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request);
    receiver.headers.push(request.headers);
    if (receiver.manner === 'hangs') return;
    if (receiver.manner === 'refuses') return void response.writeHead(401).end('who are you?');
    if (receiver.manner === 'garbage') return void response.writeHead(200).end('\0{not json');
    receiver.bodies.push(body);
    if (request.url === '/v1/traces') receiver.spans.push(...spansOf(JSON.parse(body) as OtlpRequest));
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  };
  const server = createServer((request, response) => void answer(request, response).catch(() => {}));
  await new Promise<void>((resolve) => void server.listen(onPort, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(receiver, {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  });
}
