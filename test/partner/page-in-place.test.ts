import { expect, test } from 'vitest';
import { clientOf, errorOf } from './proxied.ts';
import { serve } from './server.ts';

/** Returns the error of a delta that gets this answer. */
async function answeredWith(status: number, body: string) {
  const base = await serve((_request, response) => {
    response.writeHead(status, { 'content-type': 'text/html', location: '/login' }).end(body);
  });
  return await errorOf(clientOf(base, undefined).delta());
}

test.each([
  [200, '<html>Back soon</html>'],
  [200, '{"changed":'],
  [203, '<html>Back soon</html>'],
  [302, ''],
  [307, ''],
])(
  'a page or a redirect in place of an answer is reported as such, without naming a field: %i %s',
  async (status, body) => {
    const error = await answeredWith(status, body);
    expect(error).toMatchObject({ kind: 'unreadable', status, hint: expect.stringContaining('maintenance') });
  },
);

test('an answer of another shape refers to the doctor, which finds its fields', async () => {
  expect((await answeredWith(200, '{"changed":3}')).hint).toContain('doctor');
});
