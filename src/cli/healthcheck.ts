import { Agent, request } from 'undici';
import { loadConfig, processSources } from '../config/config.ts';
import { reachedAt } from '../daemon/http/listen.ts';
import { systemClock } from '../lib/clock.ts';
import { errorCode } from '../lib/errors.ts';
import { type Command, EXIT } from './command.ts';
import { saidBy } from './errors.ts';

const ANSWER_WITHIN_MS = 5000;
const RETRY_AFTER_MS = 50;
/** Codes of connections that were closed before there was an answer, as a daemon does that is crowded. */
const CUT = new Set(['ECONNRESET', 'UND_ERR_SOCKET']);

/**
 * The answer's status and text. A connection that is cut is tried again until the time is over; whatever else fails
 * is thrown.
 */
async function ask(url: string): Promise<{ readonly status: number; readonly text: string }> {
  const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
  // Node.js may make one that asks a proxy everybody's (NODE_USE_ENV_PROXY).
  const dispatcher = new Agent();
  for (;;) {
    try {
      const { statusCode, body } = await request(url, { signal, dispatcher });
      return { status: statusCode, text: (await body.text()).trim() };
    } catch (error) {
      const isCut = CUT.has(errorCode(error) ?? '');
      if (!isCut || signal.aborted) throw error;
      await systemClock.sleep(RETRY_AFTER_MS, signal);
    }
  }
}

export const healthcheck: Command = {
  summary: 'exit 0 if the daemon on this host answers /livez',
  usage: 'healthcheck',
  examples: [['catalog-mirror healthcheck', 'use as the HEALTHCHECK of a container']],
  exits: ['ok', 'unanswered', 'usage'],
  options: {},
  optionHelp: {},
  positionals: false,
  async run({ print }) {
    const { http } = loadConfig(processSources.env, processSources.readFile, { need: 'http' });
    const host = reachedAt(http.host);
    const url = `http://${host.includes(':') ? `[${host}]` : host}:${http.port}/livez`;
    try {
      const { status, text } = await ask(url);
      print(`${url}: ${status} ${text}`);
      return status === 200 ? EXIT.ok : EXIT.unanswered;
    } catch (error) {
      print(`${url}: ${error instanceof Error ? saidBy(error) : 'no answer'}`);
      return EXIT.unanswered;
    }
  },
};
