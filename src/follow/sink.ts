import type { Batch, Limits } from './batch.ts';
import type { Result } from './delivery.ts';

/** Where changes are delivered to. */
export interface Sink {
  /** How large a batch may be. */
  readonly limits: Limits;
  /** Delivers one, and tells what came of it; `signal` ends the attempt. Never throws for what the receiver does. */
  deliver(batch: Batch, signal: AbortSignal): Promise<Result>;
  /** What is sent for a batch, where that can be kept and sent again. */
  letterOf?(batch: Batch): { readonly messageId: string; readonly body: string };
  close(): Promise<void>;
}
