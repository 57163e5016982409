import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** How many bytes memory may grow by before the next full collection. */
const GROWTH_BYTES = 16 * 1024 ** 2;

/** Bytes in use: objects, and the buffers that they hold. */
const bytesInUse = (): number => {
  const { used_heap_size: heap, external_memory: buffers } = getHeapStatistics();
  return heap + buffers;
};

/** V8's full collection (10 to 20 ms). A process that was started without --expose-gc has no other way to it. */
function fullCollection(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}

/**
 * Keeps V8 from allocating streamed objects as old. They may survive the first young collections, while the
 * program is being compiled. V8 then allocates all of their kind as old, to be freed only by full collections, of
 * which there are several times as many.
 */
function createAsYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}

/**
 * Limits the memory of streams that leave much garbage (a manifest of any length). A buffer that happens to
 * survive two young collections stays until V8's next full one, which V8 starts only once such buffers reach 64
 * MB, or a small heap four times its size. Returns a function to call regularly: it collects as soon as memory has
 * grown by GROWTH_BYTES.
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
