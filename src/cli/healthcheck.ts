import { request } from 'undici';
import { loadConfig, processSources } from '../config/config.ts';
import { type Command, EXIT } from './command.ts';

const ANSWER_WITHIN_MS = 5000;

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
    // Listening on every address means answering on loopback too.
    const host = http.host === '0.0.0.0' || http.host === '::' ? '127.0.0.1' : http.host;
    const url = `http://${host.includes(':') ? `[${host}]` : host}:${http.port}/livez`;
    try {
      const { statusCode, body } = await request(url, { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
      print(`${url}: ${statusCode} ${(await body.text()).trim()}`);
      return statusCode === 200 ? EXIT.ok : EXIT.unanswered;
    } catch (error) {
      print(`${url}: ${error instanceof Error ? error.message : 'no answer'}`);
      return EXIT.unanswered;
    }
  },
};
