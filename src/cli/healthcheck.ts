import { Agent, request } from 'undici';
import { loadConfig, processSources } from '../config/config.ts';
import { reachedAt } from '../daemon/http/listen.ts';
import { systemClock } from '../lib/clock.ts';
import { errorCode } from '../lib/errors.ts';
import { type Command, EXIT } from './command.ts';
import { saidBy } from './errors.ts';

const ANSWER_WITHIN_MS = 5000;
const RETRY_AFTER_MS = 50;
/** Codes of connections that were closed before there was an answer, as by a crowded daemon. */
const CUT = new Set(['ECONNRESET', 'UND_ERR_SOCKET']);

/**
 * Returns the answer's status and text. Retries if a connection is cut, until the time is over; throws any other error.
 */
async function ask(url: string): Promise<{ readonly status: number; readonly text: string }> {
  const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
  // A dispatcher of its own, because NODE_USE_ENV_PROXY may make the global one ask a proxy.
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
