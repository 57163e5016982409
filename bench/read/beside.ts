import { fork } from 'node:child_process';

/**
 * Does the work while another process applies that many answers a minute (0: as fast as it can), from its first one on.
 */
export async function besideWriter<Result>(
  { url, skus, aMinute }: { readonly url: string; readonly skus: number; readonly aMinute: number },
  work: () => Promise<Result>,
) {
  const writer = fork(new URL('writer.ts', import.meta.url), [url, String(skus), String(aMinute)]);
  let applied = 0;
  writer.on('message', (count) => (applied += Number(count)));
  await new Promise((resolve) => {
    writer.once('message', resolve);
  });
  const startedAt = performance.now();
  const result = await work();
  const skusASecond = (applied * 1000) / (performance.now() - startedAt);
  const gone = new Promise((resolve) => {
    writer.once('exit', resolve);
  });
  writer.disconnect();
  await gone;
  return { result, skusASecond };
}
