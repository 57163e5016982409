import { eventually } from '../support/eventually.ts';
import { through } from '../support/net.ts';
import { type Proxy, proxyTo } from '../support/proxy.ts';
import { type Backend, createStack, type Stack } from '../support/stack.ts';

/** A stack whose daemons reach Postgres, and Redis if it has the queues, through proxies that can stop passing data. */
export interface SilentStack extends AsyncDisposable {
  readonly stack: Stack;
  readonly env: Readonly<Record<string, string>>;
  readonly proxies: readonly Proxy[];
  /** From here on nothing passes on existing connections; new ones work. */
  silence(): void;
}

export async function createSilentStack(
  backend: Backend,
  env: Readonly<Record<string, string>> = {},
): Promise<SilentStack> {
  const stack = await createStack({
    backend,
    sandbox: { skus: 400, liveShare: 0.05, latencyMs: 10, seed: 141 },
    env: { DELTA_INTERVAL: '1s', ...env },
  });
  const proxies: Proxy[] = [];
  const behind = async (url: string) => {
    const proxy = await proxyTo(url);
    proxies.push(proxy);
    return through(url, proxy);
  };
  const redisUrl = stack.env['REDIS_URL'];
  return {
    stack,
    proxies,
    env: {
      DATABASE_URL: await behind(stack.databaseUrl),
      ...(redisUrl === undefined ? {} : { REDIS_URL: await behind(redisUrl) }),
    },
    silence() {
      for (const proxy of proxies) proxy.silence();
    },
    async [Symbol.asyncDispose]() {
      // Before the daemons of this process are stopped, so that their waits end.
      for (const proxy of proxies) await proxy[Symbol.asyncDispose]();
      await stack[Symbol.asyncDispose]();
    },
  };
}

/** Waits until the partner was asked `more` times from now on, on any route. Returns the milliseconds that it took. */
export async function untilAsked({ sandbox }: Stack, more: number, within?: number): Promise<number> {
  const asked = sandbox.requests.length;
  const startedAt = performance.now();
  await eventually(() => sandbox.requests.length >= asked + more, {
    what: `${more} requests to the partner`,
    ...(within === undefined ? {} : { within }),
  });
  return performance.now() - startedAt;
}
