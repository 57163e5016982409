import { resolve } from 'node:path';
import { type MirrorConfig, processSources, secretsOf } from '../config/config.ts';
import { systemClock } from '../lib/clock.ts';
import { adviceOn } from '../store/connection/remedies.ts';
import { createScrubber } from '../telemetry/log/scrub.ts';
import { scrubStderr } from './process.ts';

/** There is no mirror: a setting is missing, so the exit code is 78. Its message has one line per reason. */
export class NoMirror extends Error {
  override readonly name = 'NoMirror';
  readonly kind = 'no-mirror';
  readonly hint =
    'set DATABASE_URL; or run this where the daemon or the demo was started, or with the same DATA_DIR; or ' +
    'start one: `catalog-mirror run`, `catalog-mirror demo`';

  /** @param owners whose embedded Postgres would have been used */
  constructor(
    { database, warnings }: Pick<MirrorConfig, 'database' | 'warnings'>,
    owners: readonly string[],
  ) {
    super(
      [
        `no mirror here: DATABASE_URL is not set, and ${resolve(database.dataDir)} has no embedded Postgres of a ${owners.join(' or a ')}`,
        ...warnings,
      ].join('\n'),
    );
  }
}

/** Prints an error on stderr, without what must not be shown: drivers put parts of their settings into messages. */
export function printError(error: unknown): void {
  process.stderr.write(`${withoutSecrets(explain(error))}\n`);
}

const SCRUBBED_WITHIN_MS = 1000;

/**
 * Scrubs what libraries print about their work if DEBUG or NODE_DEBUG is set. Secrets are read again at most once a
 * second, because there may be thousands of lines.
 */
export function scrubDebugOutput(): void {
  const { env, readFile } = processSources;
  if ((env['DEBUG'] ?? '') === '' && (env['NODE_DEBUG'] ?? '') === '') return;
  let known: { readonly secrets: readonly string[]; readonly at: number } | null = null;
  const secrets = () => {
    const now = systemClock.monotonic();
    if (known === null || now - known.at > SCRUBBED_WITHIN_MS)
      known = { secrets: secretsOf(env, readFile), at: now };
    return known.secrets;
  };
  const scrubber = createScrubber(secrets);
  scrubStderr((text) => scrubber.text(text));
}

/** Replaces every readable secret of the environment in a text for people. */
export function withoutSecrets(text: string): string {
  return createScrubber(() => secretsOf(processSources.env, processSources.readFile)).text(text);
}

/** Formats an error for people: what is wrong, why, and what to do if the error says so. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { what, hint } = adviceOn(error);
  const message = saidBy(error);
  const lines = what === null ? [message] : [what, `  because: ${message}`];
  for (let cause = error.cause; cause instanceof Error; cause = cause.cause)
    lines.push(`  because: ${saidBy(cause)}`);
  if (hint !== null) lines.push(`  what to do: ${hint}`);
  return lines.join('\n');
}

/** Returns an error's message. If that is empty, returns the errors in it, its code or its name. */
export function saidBy(error: Error): string {
  if (error.message !== '') return error.message;
  const within: readonly unknown[] = error instanceof AggregateError ? error.errors : [];
  const messages = within.filter((each) => each instanceof Error).map(saidBy);
  if (messages.length > 0) return messages.join('; ');
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}
