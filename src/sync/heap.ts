import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** By how many bytes memory may grow from one full collection to the next. */
const GROWTH_BYTES = 16 * 1024 ** 2;

/** Bytes in use: objects, and the buffers that hang on them. */
const bytesInUse = (): number => {
  const { used_heap_size: heap, external_memory: buffers } = getHeapStatistics();
  return heap + buffers;
};

/** V8's full collection, 10 to 20 ms; the one way to it from within a process that was not started with --expose-gc. */
function fullCollection(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}

/**
 * What streams by may live through the first young collections, while the program is being compiled. V8 then takes
 * all of its kind for what stays, creates the rest of it as such, and only full collections, of which there are then
 * several times as many, free that.
 */
function createAsYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}

/**
 * For streams that leave much garbage (a manifest of any length). A buffer that happens to outlive two young
 * collections stays until V8's next full one. V8 begins that only once such buffers come to 64 MB, or a small heap to
 * four times its size. Returns a function to call regularly: it collects as soon as memory has grown by GROWTH_BYTES.
 */
export function heapKeeper(inUse = bytesInUse, collect = fullCollection()): () => void {
  createAsYoung();
  let least = inUse();
  return () => {
    const bytes = inUse();
    least = Math.min(least, bytes);
    if (bytes - least < GROWTH_BYTES) return;
    collect();
    least = inUse();
  };
}
