import fc from 'fast-check';
import { beforeEach } from 'vitest';

/*
 * A failing property is shrunk until its test times out, which then reports neither the seed nor the failure. This
 * ends shrinking earlier, with the smallest example so far; a property that is only slow fails as such.
 */
beforeEach(({ task }) => {
  fc.configureGlobal({
    interruptAfterTimeLimit: (task.timeout * 5) / 6,
    markInterruptAsFailure: true,
    includeErrorInReport: true,
  });
});
