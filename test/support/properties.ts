import fc from 'fast-check';

/** Less than `testTimeout` of those that speak to Postgres, where each run takes its time. */
const WITHIN_MS = 150_000;

/*
 * A property that fails is made smaller until its test's time is over, which then says neither seed nor what has
 * failed. It ends before, with the smallest example that was found by then; one that is only slow fails as such.
 */
fc.configureGlobal({
  interruptAfterTimeLimit: WITHIN_MS,
  markInterruptAsFailure: true,
  includeErrorInReport: true,
});
