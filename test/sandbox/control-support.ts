import type { SandboxOptions } from '../../src/sandbox/index.ts';
import { type Caller, start } from './support.ts';

export type Json = Record<string, unknown>;

/** Makes a control call and returns its answer. */
export async function control(caller: Caller, method: string, path: string, body?: object | string) {
  const text = typeof body === 'object' ? JSON.stringify(body) : body;
  const answer = await fetch(`${caller.sandbox.url}/sandbox${path}`, {
    method,
    ...(text === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: text }),
  });
  return { status: answer.status, json: (await answer.json()) as Json };
}

const AT = Date.UTC(2026, 0, 1);
export const opened = async (options: SandboxOptions = {}) =>
  start({ startAt: AT, orders: 10, listings: 10, liveShare: 0, ghostShare: 0, ...options });
