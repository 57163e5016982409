/** Resolves with the first SIGTERM or SIGINT; a second one ends the process at once. */
export function stopSignal(): { readonly promise: Promise<NodeJS.Signals>; readonly dispose: () => void } {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let seen = 0;
  const listener = (signal: NodeJS.Signals) => {
    seen += 1;
    if (seen > 1) process.exit(1);
    resolve(signal);
  };
  process.on('SIGTERM', listener);
  process.on('SIGINT', listener);
  return {
    promise,
    dispose() {
      process.off('SIGTERM', listener);
      process.off('SIGINT', listener);
    },
  };
}
