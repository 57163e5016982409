import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { useStore } from '../store/support.ts';
import { healthOf } from '../support/health.ts';
import { type Port, refusingSettings, through } from '../support/net.ts';

const store = useStore();

const BEHIND = 300;

/** The answer of a server without a matching pg_hba.conf entry. */
const NO_ENTRY = { S: 'FATAL', C: '28000', M: 'no pg_hba.conf entry', R: 'ClientAuthentication' };

let closed: Port;
beforeAll(async () => {
  closed = await refusingSettings(store.url, NO_ENTRY);
});
afterAll(() => closed[Symbol.asyncDispose]());

test.each([
  ['a connection without TLS', () => new URL(through(store.url, closed)), '(28000): it is not encrypted'],
  ['a login', () => Object.assign(new URL(store.url), { username: 'nobody_here', password: 'x' }), '(28'],
  ['a database', () => Object.assign(new URL(store.url), { pathname: '/nowhere_here' }), '(3D000)'],
])(
  '%s that Postgres refuses is reported even behind hundreds of waiting statements',
  async (_what, url, code) => {
    const sql = connect(url().href, { max: 2 });
    const waiting = Array.from({ length: BEHIND }, () => sql`select`.catch(() => {}));
    const health = healthOf(sql);
    try {
      expect(await health.ready()).toMatchObject({
        ok: false,
        reason: expect.stringContaining(code) as unknown,
      });
    } finally {
      await sql.end({ timeout: 0 });
      await Promise.all(waiting);
    }
  },
);
