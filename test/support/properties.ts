import fc from 'fast-check';
import { beforeEach } from 'vitest';

/*
 * A property that fails is made smaller until its test's time is over, which then says neither seed nor what has
 * failed. It ends before, with the smallest example that was found by then; one that is only slow fails as such.
 */
beforeEach(({ task }) => {
  fc.configureGlobal({
    interruptAfterTimeLimit: (task.timeout * 5) / 6,
    markInterruptAsFailure: true,
    includeErrorInReport: true,
  });
});
