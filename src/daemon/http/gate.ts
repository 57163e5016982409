import type { IncomingMessage } from 'node:http';
import { hostName } from '../../lib/host-name.ts';
import type { Log } from '../../telemetry/log/logger.ts';
import type { LogThrottle } from '../../telemetry/log/throttle.ts';
import { type Answer, json } from './answer.ts';
import { hostJudge } from './hosts.ts';

export interface GateOptions {
  /** HTTP_HOST. */
  readonly host: string;
  /** Names beside HTTP_HOST by which this server is reached; null: none. */
  readonly allowedHosts?: readonly string[] | null;
}

/** Why a request may not read what is not for everyone. */
type Refusal = 'ambiguous-host' | 'unknown-host';

const ANSWERS: Readonly<Record<Refusal, Answer>> = {
  'ambiguous-host': json(400, { reason: 'more than one Host' }),
  'unknown-host': json(421, {
    reason: 'this Host is not known here: use an address, or add the name to HTTP_ALLOWED_HOSTS',
  }),
};

export interface Gate {
  /** The answer for a request that may not read; null: it may. `always`: whatever it asks for. */
  refusal(request: IncomingMessage): { readonly always: boolean; readonly answer: Answer } | null;
}

/** Decides who may read prices and health in detail. Refusals that an operator may have to act on are logged, throttled. */
export function createGate(options: GateOptions, log: Log, throttle: LogThrottle): Gate {
  const judgeHost = hostJudge(options.host, options.allowedHosts ?? []);

  function refusalOf({ headersDistinct }: IncomingMessage): Refusal | null {
    const host = judgeHost(headersDistinct.host);
    if (host !== 'known') return host === 'ambiguous' ? 'ambiguous-host' : 'unknown-host';
    return null;
  }

  function tell(refusal: Refusal, { headers, socket }: IncomingMessage): void {
    if (refusal !== 'unknown-host') return;
    // One fingerprint: whoever asks must not choose how many lines there are, or how long they get.
    const { say, ...facts } = throttle.again(refusal, '');
    const host = hostName(headers.host?.replace(/:\d{0,5}$/, '') ?? '') ?? undefined;
    if (say) log.warn({ event: 'http.unknown-host', host, from: socket.remoteAddress, ...facts });
  }

  return {
    refusal(request) {
      const refusal = refusalOf(request);
      if (refusal === null) return null;
      tell(refusal, request);
      return { always: refusal === 'ambiguous-host', answer: ANSWERS[refusal] };
    },
  };
}
