import { ENDPOINT_ROWS } from './rows-endpoints.ts';
import { OUTCOME_ROWS } from './rows-outcomes.ts';
import { RESOURCE_ROWS } from './rows-resources.ts';

/**
 * Every rule of the partner's API, sections 1 to 8, by its id: the section, followed by the rule's number or else
 * its name. `npm run docs` writes them into docs/partner-rules.md, to which comments refer by these ids.
 * `coverage.test.ts` requires for every rule a test whose name begins with the id, or a reason in `NOT_TESTED`.
 */
export const ROWS = { ...RESOURCE_ROWS, ...ENDPOINT_ROWS, ...OUTCOME_ROWS } as const;

export type RowId = keyof typeof ROWS;

/** Why a rule has no test here. */
export const NOT_TESTED: Partial<Record<RowId, string>> = {
  '1.4': 'the sandbox listens on loopback without TLS; test/security holds the mirror to https',
  '1.5': 'says that something is not sent: there is no call to make',
  '3.1': 'says that something is not documented',
  '4.1.4': 'tells clients when to retry; the server answers the same way at any pace',
  '4.2.8': 'tells clients how often to download',
  '5.2': 'credentials are issued by people, outside the interface',
  '5.6': 'tells clients how to read 401, 403 and 500; what is sent is held by the rows of 5.5',
  '6': 'says that something is not sent: there is no call to make',
  '7.4.8': 'says that something is not documented',
  '8.manifest-interval':
    "a default of the partner's deployment; the sandbox builds when told or at an interval of its own",
};
