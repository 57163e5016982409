import { parseJson } from '../../lib/json.ts';
import { type Permit, bulkRequest, deltaRequest, manifestRequest } from '../../partner/client.ts';
import { PartnerError, type RequestOutcome, type Route } from '../../partner/errors.ts';
import {
  type AnswerHead,
  type ApiRequest,
  createTransport,
  type TransportOptions,
} from '../../partner/transport.ts';

/** One answer as it came, to find out how the partner spells what it does not document. */
export interface RawAnswer {
  readonly route: Route;
  /** Null: a 200 whose body is JSON. */
  readonly error: PartnerError | null;
  /** The body, also of a refusal; undefined if none could be read. It may contain anything, such as a presigned URL. */
  readonly body: unknown;
  readonly date: Date | null;
  readonly sentAt: number;
  readonly receivedAt: number;
}

/** Requests to the partner whose answers are not interpreted. Each needs a permit, and settles it; none throws. */
export interface RawClient {
  manifest(permit: Permit): Promise<RawAnswer>;
  delta(permit: Permit, since: string): Promise<RawAnswer>;
  /** `body`: lists of SKUs, by the names under which they are sent. */
  bulk(permit: Permit, body: ReadonlyMap<string, readonly string[]>): Promise<RawAnswer>;
  close(): Promise<void>;
}

/** Opens the connection for such requests; `now` is this host's clock, in epoch milliseconds. */
export function createRawClient(options: TransportOptions, now: () => number): RawClient {
  const transport = createTransport(options);

  async function ask(permit: Permit, request: ApiRequest): Promise<RawAnswer> {
    const { route } = request;
    const head: AnswerHead = { status: null, date: null, ageSeconds: null };
    const sentAt = now();
    let body: unknown;
    let error: PartnerError | null = null;
    try {
      body = await transport.request(request, head);
    } catch (thrown) {
      error = thrown instanceof PartnerError ? thrown : new PartnerError('aborted', route);
      body = head.refusal;
    }
    const receivedAt = now();
    const outcome: RequestOutcome = error?.kind ?? 'ok';
    await permit.settle(outcome).catch(() => undefined);
    return { route, error, body, date: head.date, sentAt, receivedAt };
  }

  return {
    manifest: (permit) => ask(permit, manifestRequest()),
    delta: (permit, since) => ask(permit, deltaRequest(since)),
    bulk: (permit, body) =>
      ask(
        permit,
        bulkRequest(body, (text) => parseJson(text)),
      ),
    close: () => transport.close(),
  };
}
