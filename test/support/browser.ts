import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'chrome'];

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The path of a Chromium on this machine, or null. */
export const CHROMIUM: string | null =
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .find(isProgram) ?? null;

export interface Tab {
  /** Evaluates an expression in the page and returns its value, or what its promise resolves to, through JSON. */
  evaluate<T>(expression: string): Promise<T>;
  /** Console, network and script errors since the page was opened. */
  readonly errors: readonly string[];
  /** Returns a PNG of the whole page, or of its first `height` pixels. */
  screenshot(height?: number): Promise<Buffer>;
  close(): Promise<void>;
}

export interface Browser extends AsyncDisposable {
  open(
    url: string,
    look: {
      readonly width: number;
      readonly scheme: 'light' | 'dark';
      readonly script?: boolean;
      readonly zone?: string;
    },
  ): Promise<Tab>;
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly sessionId?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

async function endpointOf(child: ChildProcess): Promise<string> {
  if (child.stderr === null) throw new Error('no stderr');
  for await (const line of createInterface({ input: child.stderr })) {
    const [, url] = /DevTools listening on (ws:\S+)/.exec(line) ?? [];
    if (url !== undefined) return url;
  }
  throw new Error('Chromium ended without listening');
}

/** Starts a headless Chromium with its own profile. */
export async function startBrowser(): Promise<Browser> {
  const profile = await mkdtemp(join(tmpdir(), 'catalog-mirror-browser-'));
  const child = spawn(
    CHROMIUM ?? 'chromium',
    [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--remote-debugging-port=0',
      `--user-data-dir=${profile}`,
      'about:blank',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const exited = once(child, 'close');
  const socket = new WebSocket(await endpointOf(child));
  child.stderr.resume();
  await once(socket, 'open');
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  const listeners = new Set<(message: Message) => void>();
  let last = 0;
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(String(data)) as Message;
    const call = waiting.get(message.id ?? 0);
    if (message.error !== undefined) call?.reject(new Error(message.error.message));
    else call?.resolve(message.result);
    for (const listener of listeners) listener(message);
  });
  const send = async (method: string, params: object = {}, sessionId?: string): Promise<unknown> => {
    const call = Promise.withResolvers<unknown>();
    last += 1;
    waiting.set(last, call);
    socket.send(JSON.stringify({ id: last, method, params, sessionId }));
    return await call.promise;
  };
  return {
    open: (url, look) => openTab(url, look, send, (listener) => listeners.add(listener)),
    async [Symbol.asyncDispose]() {
      socket.close();
      child.kill('SIGKILL');
      await exited;
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

async function openTab(
  url: string,
  look: {
    readonly width: number;
    readonly scheme: string;
    readonly script?: boolean;
    readonly zone?: string;
  },
  send: (method: string, params?: object, sessionId?: string) => Promise<unknown>,
  listen: (listener: (message: Message) => void) => void,
): Promise<Tab> {
  const { targetId } = (await send('Target.createTarget', { url: 'about:blank' })) as { targetId: string };
  const attached = await send('Target.attachToTarget', { targetId, flatten: true });
  const { sessionId } = attached as { sessionId: string };
  const here = (method: string, params: object = {}) => send(method, params, sessionId);
  const errors: string[] = [];
  const loaded = Promise.withResolvers<void>();
  listen((message) => {
    if (message.sessionId !== sessionId) return;
    const { method = '', params = {} } = message;
    if (method === 'Page.loadEventFired') loaded.resolve();
    const told = JSON.stringify(params);
    if (method === 'Runtime.exceptionThrown' || method === 'Log.entryAdded') errors.push(told);
    if (method === 'Runtime.consoleAPICalled' && params['type'] !== 'log') errors.push(told);
  });
  for (const domain of ['Page', 'Runtime', 'Log']) await here(`${domain}.enable`);
  if (look.script === false) await here('Emulation.setScriptExecutionDisabled', { value: true });
  const size = { width: look.width, height: 800, deviceScaleFactor: 1, mobile: look.width < 600 };
  await here('Emulation.setDeviceMetricsOverride', size);
  // They take up space only on some machines.
  await here('Emulation.setScrollbarsHidden', { hidden: true });
  // Makes tabs behind the newest one count as visible, too.
  await here('Emulation.setFocusEmulationEnabled', { enabled: true });
  if (look.zone !== undefined) await here('Emulation.setTimezoneOverride', { timezoneId: look.zone });
  const features = [{ name: 'prefers-color-scheme', value: look.scheme }];
  await here('Emulation.setEmulatedMedia', { features });
  await here('Page.navigate', { url });
  await loaded.promise;
  return {
    errors,
    async evaluate<T>(expression: string) {
      const answer = await here('Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true });
      const { result, exceptionDetails } = answer as { result: { value: T }; exceptionDetails?: unknown };
      if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
      return result.value;
    },
    async screenshot(height?: number) {
      const clip = height === undefined ? {} : { clip: { x: 0, y: 0, width: look.width, height, scale: 1 } };
      const options = { format: 'png', captureBeyondViewport: true, ...clip };
      await here('Page.bringToFront');
      const taken = async () => (await here('Page.captureScreenshot', options)) as { data: string };
      let { data } = await taken();
      // The first picture after a change may show a page that is still being laid out: sometimes a changed font
      // did.
      for (let tries = 0; tries < 10; tries++) {
        const { data: again } = await taken();
        if (again === data) break;
        data = again;
      }
      return Buffer.from(data, 'base64');
    },
    async close() {
      await send('Target.closeTarget', { targetId });
    },
  };
}
