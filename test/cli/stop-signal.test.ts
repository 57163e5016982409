import { EventEmitter } from 'node:events';
import { describe, expect, test } from 'vitest';
import { endFirstProcess, stopSignal } from '../../src/cli/process.ts';

/** Sends signals at chosen times; records the exit codes with which the process would have ended. */
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

test('the first signal requests the stop', async () => {
  const { signal, ends, send } = signalled();
  send('SIGTERM', 5000);
  expect(await signal.promise).toBe('SIGTERM');
  expect(ends).toEqual([]);
});

test('Ctrl-C under npm, which forwards it after the terminal has sent it, counts once', async () => {
  const { signal, ends, send } = signalled();
  send('SIGINT', 5000);
  send('SIGINT', 5001);
  send('SIGINT', 5999);
  expect(await signal.promise).toBe('SIGINT');
  expect(ends).toEqual([]);
});

test('a second signal after that ends the process at once', () => {
  const { ends, send } = signalled();
  send('SIGTERM', 5000);
  send('SIGINT', 5001);
  send('SIGINT', 6000);
  expect(ends).toEqual([1]);
});

test('after disposal, signals have their usual effect', () => {
  const { signal, emitter } = signalled();
  signal.dispose();
  expect(emitter.eventNames()).toEqual([]);
});

describe('a signal without a listener', () => {
  function process(pid: number) {
    const ends: number[] = [];
    const emitter = new EventEmitter();
    endFirstProcess({
      pid,
      on: (name, listener) => emitter.on(name, listener),
      listenerCount: (name) => emitter.listenerCount(name),
      exit: (code) => ends.push(code),
    });
    return { emitter, ends };
  }

  test('ends the first process of a container, for which the kernel has no default action', () => {
    const { emitter, ends } = process(1);
    emitter.emit('SIGTERM', 'SIGTERM');
    emitter.emit('SIGINT', 'SIGINT');
    expect(ends).toEqual([143, 130]);
  });

  test('does so before and after a stop is awaited, but not meanwhile', () => {
    const { emitter, ends } = process(1);
    const stop = () => {};
    emitter.on('SIGTERM', stop);
    emitter.emit('SIGTERM', 'SIGTERM');
    expect(ends).toEqual([]);
    emitter.off('SIGTERM', stop);
    emitter.emit('SIGTERM', 'SIGTERM');
    expect(ends).toEqual([143]);
  });

  test('is left to the kernel in any other process', () => {
    expect(process(2).emitter.eventNames()).toEqual([]);
  });
});
