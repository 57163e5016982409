import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { stopSignal } from '../../src/cli/process.ts';

/** Signals by hand, at times by hand: what is waited for, and the codes with which the process would have ended. */
function signalled() {
  let at = 0;
  const ends: number[] = [];
  const emitter = new EventEmitter();
  const signal = stopSignal(
    { monotonic: () => at },
    {
      on: (name, listener) => emitter.on(name, listener),
      off: (name, listener) => emitter.off(name, listener),
      exit: (code) => ends.push(code),
    },
  );
  const send = (name: NodeJS.Signals, ms: number) => {
    at = ms;
    emitter.emit(name, name);
  };
  return { signal, ends, send, emitter };
}

test('the first signal asks for the stop', async () => {
  const { signal, ends, send } = signalled();
  send('SIGTERM', 5000);
  expect(await signal.promise).toBe('SIGTERM');
  expect(ends).toEqual([]);
});

test('one Ctrl-C under npm, which forwards it after the terminal has sent it, is one', async () => {
  const { signal, ends, send } = signalled();
  send('SIGINT', 5000);
  send('SIGINT', 5001);
  send('SIGINT', 5999);
  expect(await signal.promise).toBe('SIGINT');
  expect(ends).toEqual([]);
});

test('a second one after that ends the process at once', () => {
  const { ends, send } = signalled();
  send('SIGTERM', 5000);
  send('SIGINT', 5001);
  send('SIGINT', 6000);
  expect(ends).toEqual([1]);
});

test('afterwards signals have their usual effect', () => {
  const { signal, emitter } = signalled();
  signal.dispose();
  expect(emitter.eventNames()).toEqual([]);
});
