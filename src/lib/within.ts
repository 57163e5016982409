const LATE = 'ETIMEDOUT';

/**
 * The promise's result, or an error with code ETIMEDOUT after `timeoutMs`; what the promise waits for is not stopped.
 * For clients that may wait forever, as that of Redis does while its server is down.
 */
export async function within<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    const late = Object.assign(new Error(`no answer within ${timeoutMs} ms`), { code: LATE });
    timer = setTimeout(() => reject(late), timeoutMs);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether it is that error. */
export const isOutOfTime = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === LATE;
