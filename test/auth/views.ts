import { readStatusOf } from '../../src/cli/status.ts';
import { loadConfig } from '../../src/config/config.ts';
import type { App } from '../../src/daemon/app.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { asJson } from '../../src/status/json.ts';
import { screen } from '../../src/status/screen.ts';
import { readyz } from '../contract/harness.ts';
import type { LogLine, Stack } from '../support/stack.ts';

/** What `sync_status` says about refusals. */
export interface SqlView {
  readonly refusal: string | null;
  readonly refused_since: Date | null;
  readonly refusals: number;
  readonly backing_off_until: Date | null;
}

export async function sqlView({ sql }: Stack): Promise<SqlView> {
  const [row] = await sql<[SqlView]>`
    select refusal, refused_since, refusals, backing_off_until from catalog.sync_status`;
  return row;
}

/** What `status --json` says about refusals. */
export interface Refused {
  readonly outcome: string;
  readonly times: number;
  readonly since: string;
  readonly ownRequests: number;
  readonly suspected: string;
}

/** Returns what the two forms of `status` print. */
async function statusOf({ sql, env }: Stack): Promise<{ text: string; json: unknown }> {
  const { status, health, now } = await readStatusOf(
    sql,
    loadConfig(env, () => '', { need: 'database' }),
  );
  return {
    text: screen(status, health, now, { width: null, colour: false, ascii: false }),
    json: JSON.parse(JSON.stringify(asJson(status, health, now))),
  };
}

/**
 * Reads every place that reports refusals at about the same moment: the degraded reasons, the pace line of the
 * screen, …
 */
export async function views(stack: Stack, app: App) {
  const [health, status, sql] = await Promise.all([readyz(app), statusOf(stack), sqlView(stack)]);
  const { pace } = status.json as { pace: { refusal: string | null; refused: Refused | null } };
  return {
    ready: health.status,
    degraded: health.body['degraded'] as string[],
    pace: status.text.split('\n').find((line) => line.startsWith('pace')) ?? '',
    refusal: pace.refusal,
    refused: pace.refused,
    sql,
  };
}

/** Returns samples of GET /metrics by name, summed over their labels. */
export async function samples(app: App): Promise<(name: string, label?: string) => number | undefined> {
  const text = await (await fetch(`http://127.0.0.1:${app.httpPort}/metrics`)).text();
  return (name, label = '') => {
    const values = text
      .split('\n')
      .filter((line) => line.startsWith(`catalog_mirror_${name}`) && line.includes(label))
      .map((line) => Number(line.split(' ').at(-1)));
    return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0);
  };
}

/** Returns the log lines that an operator sees by default. */
export function seen(lines: readonly LogLine[]): LogLine[] {
  return lines.filter(({ level }) => level !== 'debug' && level !== 'trace');
}

/** Sends `count` requests at once with the right credential, like other services of the account. */
export async function outsideTraffic({ url, apiKey, secret }: Sandbox, count: number): Promise<void> {
  const authorization = `Basic ${Buffer.from(`${apiKey}:${secret}`).toString('base64')}`;
  await Promise.all(
    Array.from({ length: count }, async () => {
      await (await fetch(`${url}/partner/catalog/manifest`, { headers: { authorization } })).arrayBuffer();
    }),
  );
}
