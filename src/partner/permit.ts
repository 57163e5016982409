/**
 * Leave to send one request with the account's api_key (specification 8: the rolling limit counts every request).
 * The pacer hands permits out; the client takes one for each API request, so nothing can be sent unpaced.
 */
export interface Permit {
  /** How long the request waited for its turn, where that is known. */
  readonly waitedMs?: number;
  /** Tells the pacer how the request ended: 'ok' or the error's kind. Called once for each permit. */
  settle(outcome: string): Promise<void>;
}
