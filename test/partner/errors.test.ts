import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import {
  AUTH_CLASS,
  classifyAnswer,
  classifyFailure,
  codeOf,
  PartnerError,
  ROUTES,
  safeCause,
  type PartnerErrorKind,
  type Route,
} from '../../src/partner/errors.ts';

type Row = [Route, number, unknown, PartnerErrorKind | null];

const rows: Row[] = [
  // partner rules 5.5: the auth path
  ['bulk', 401, { message: 'Unauthorized' }, 'unauthorised'],
  ['bulk', 500, { message: 'Internal Server Error' }, 'authorizer-fault'],
  ['bulk', 403, { message: 'Forbidden' }, 'throttled-or-forbidden'],
  ['bulk', 403, { statusCode: 403, message: 'Supplier account not configured' }, 'account-not-configured'],
  [
    'bulk',
    403,
    { statusCode: '403', message: ' supplier account not configured ' },
    'account-not-configured',
  ],
  ['bulk', 403, { statusCode: 403, message: 'Forbidden resource' }, 'throttled-or-forbidden'],
  [
    'bulk',
    403,
    { statusCode: 403, message: 'Forbidden resource', error: 'Forbidden' },
    'throttled-or-forbidden',
  ],
  ['bulk', 403, { statusCode: 403, message: ['reworded'] }, 'throttled-or-forbidden'],
  ['bulk', 403, { statusCode: 403 }, 'throttled-or-forbidden'],
  ['bulk', 403, { message: 'Supplier account not configured' }, 'throttled-or-forbidden'],
  ['bulk', 403, null, 'throttled-or-forbidden'],
  ['bulk', 403, '<html>', 'throttled-or-forbidden'],
  ['bulk', 403, ['statusCode'], 'throttled-or-forbidden'],
  ['delta', 403, { message: 'Forbidden', code: '0010' }, 'throttled-or-forbidden'],
  ['manifest', 401, null, 'unauthorised'],
  // 7.2: the two kinds of 500
  ['lowest', 500, { errorMessage: 'Internal Server Error' }, 'service-fault'],
  ['lowest', 500, { errorMessage: 'x', message: 'y' }, 'service-fault'],
  ['lowest', 500, { message: 'x', code: '9999' }, 'service-fault'],
  ['lowest', 500, { message: 'x', statusCode: 500 }, 'service-fault'],
  ['lowest', 500, null, 'service-fault'],
  ['lowest', 502, { message: 'Internal Server Error' }, 'service-fault'],
  ['lowest', 504, null, 'service-fault'],
  // 7.3: codes, each with its status and its routes
  ['lowest', 400, { message: 'x', code: '0009' }, 'sku-not-found'],
  ['bulk', 400, { message: 'x', code: '0009' }, 'bad-request'],
  ['delta', 400, { message: 'x', code: '0010' }, 'snapshot-expired'],
  ['delta', 400, { message: 'x', code: '0011' }, 'since-missing'],
  ['delta', 400, { message: 'x', code: '0013' }, 'delta-too-large'],
  ['delta', 503, { message: 'x', code: '0014' }, 'snapshot-stale'],
  ['manifest', 503, { message: 'x', code: '0012' }, 'no-snapshot'],
  ['manifest', 503, { message: 'x', code: '0014' }, 'snapshot-stale'],
  ['delta', 500, { message: 'x', code: '0010' }, 'service-fault'],
  ['delta', 503, { message: 'x', code: '0010' }, 'service-fault'],
  ['bulk', 503, { message: 'x', code: '0012' }, 'service-fault'],
  ['manifest', 503, null, 'service-fault'],
  // 7.1 and what it does not list
  ['bulk', 400, { statusCode: 400, message: 'x' }, 'bad-request'],
  ['bulk', 400, null, 'bad-request'],
  ['bulk', 404, { message: 'x' }, 'not-a-route'],
  ['bulk', 408, null, 'timeout'],
  ['delta', 408, { message: 'Refused' }, 'timeout'],
  ['bulk', 413, null, 'bad-request'],
  ['bulk', 429, null, 'throttled-or-forbidden'],
  ['bulk', 200, { results: {} }, null],
  ['lowest', 200, { code: '0000' }, null],
  ['lowest', 200, { code: '0009' }, 'unreadable'],
  ['bulk', 201, {}, 'unreadable'],
  ['bulk', 204, null, 'unreadable'],
  ['bulk', 302, null, 'unreadable'],
  // the files origin is not the API: its 403 is not a throttle
  ['manifest-file', 200, null, null],
  ['manifest-file', 403, { message: 'Forbidden' }, 'url-expired'],
  ['manifest-file', 302, null, 'file-fault'],
  ['manifest-file', 404, null, 'file-fault'],
  ['manifest-file', 206, null, 'file-fault'],
  ['manifest-file', 503, null, 'file-fault'],
];

test.each(rows)('%s %i %j is %s', (route, status, body, kind) => {
  expect(classifyAnswer(route, status, body)).toBe(kind);
});

test('the auth class contains what both a throttle and a wrong credential look like', () => {
  expect([...AUTH_CLASS].toSorted()).toEqual(['authorizer-fault', 'throttled-or-forbidden', 'unauthorised']);
});

test.each([
  [{ code: '0010' }, '0010'],
  [{ code: 10 }, '0010'],
  [{ code: 'abc' }, undefined],
  [{ code: -1 }, undefined],
  [{}, undefined],
  [null, undefined],
  [[], undefined],
])('the code of %j is %s', (body, code) => {
  expect(codeOf(body)).toBe(code);
});

describe('failures without an answer', () => {
  const idle = new AbortController().signal;
  const coded = (code: string) => Object.assign(new Error('x'), { code });

  test('are classified by the signals before the exception', () => {
    expect(classifyFailure(coded('ECONNRESET'), AbortSignal.abort(), idle)).toBe('aborted');
    expect(classifyFailure(coded('ECONNRESET'), idle, AbortSignal.abort())).toBe('timeout');
    expect(classifyFailure(coded('ECONNRESET'), undefined, idle)).toBe('network');
  });

  test('are classified by a code found through causes', () => {
    expect(classifyFailure(new Error('x', { cause: coded('UND_ERR_BODY_TIMEOUT') }), idle, idle)).toBe(
      'timeout',
    );
  });
});

describe('safe causes', () => {
  test('omit the input of an invalid URL', () => {
    let thrown: unknown;
    try {
      void new URL('http://[canary?X-Amz-Signature=canary');
    } catch (error) {
      thrown = error;
    }
    expect(inspect(thrown)).toContain('canary');
    expect(inspect(safeCause(thrown), { depth: 10 })).not.toContain('canary');
  });

  test('redact secrets, query strings and Basic credentials', () => {
    const source = Object.assign(new Error('GET /x?sig=canary1 Basic Y2FuYXJ5Mg== and canary3'), {
      request: 'canary4',
    });
    const shown = inspect(safeCause(source, ['canary3', '']), { depth: 10 });
    expect(shown).toContain('GET /x?[query] Basic [secret] and [secret]');
    expect(shown).not.toMatch(/canary|Y2Fu/);
  });

  test('have no text of a thrown value that is not an error', () => {
    expect(safeCause('canary').message).toBe('unknown failure');
  });
});

test('an error carries its kind, route, status, code and a hint', () => {
  const error = new PartnerError('snapshot-expired', 'delta', { status: 400, code: '0010' });
  expect(error).toMatchObject({ kind: 'snapshot-expired', route: 'delta', status: 400, code: '0010' });
  expect(error.message).toBe('delta: snapshot-expired (status 400, code 0010)');
  expect(error.hint).toContain('new manifest is fetched');
});

test('only the hint of bulk calls mentions another name of their body key', () => {
  const hintOf = (route: Route) => new PartnerError('bad-request', route).hint;
  for (const route of ROUTES)
    expect([route, hintOf(route).includes('PARTNER_BULK_BODY_KEY')]).toEqual([route, route === 'bulk']);
});
