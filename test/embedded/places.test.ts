import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { remedyFor } from '../../src/embedded/initdb.ts';
import { findEmbeddedPostgres, startEmbeddedPostgres } from '../../src/embedded/postgres.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'embedded-places-'));
  await writeFile(join(folder, 'file'), '');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const refused = (message: RegExp) => ({
  kind: 'data-dir',
  message: expect.stringMatching(message) as unknown,
  hint: expect.stringContaining('DATA_DIR') as unknown,
});

test('a user without an entry in /etc/passwd, as in a container, is told what initdb needs', () => {
  const output = 'initdb: could not look up effective user ID 34567: user does not exist';
  expect(remedyFor(output)).toMatch(/with the id 34567 to \/etc\/passwd.*DATABASE_URL/);
  expect(remedyFor('initdb: error: could not write: No space left on device')).toMatch(
    /read what initdb says/,
  );
});

test.each([
  // As DATA_DIR itself, and further up.
  ['file/postgres', /cannot be used \((?:EEXIST|ENOTDIR)\)/],
  ['file/data/postgres', /cannot be used \(ENOTDIR\)/],
  ['../../../../../../../../proc/none/postgres', /cannot be used \(ENOENT\)/],
  [`${'d'.repeat(300)}/postgres`, /cannot be used \(ENAMETOOLONG\)/],
])('a data directory at %s is named in the error, with advice', async (place, message) => {
  await expect(startEmbeddedPostgres({ dataDir: join(folder, place) })).rejects.toMatchObject(
    refused(message),
  );
});

test('a missing working directory is reported for a relative data directory, and irrelevant for an absolute one', async () => {
  const gone = Object.assign(new Error('uv_cwd'), { code: 'ENOENT' });
  const cwd = vi.spyOn(process, 'cwd').mockImplementation(() => {
    throw gone;
  });
  try {
    await expect(findEmbeddedPostgres('data/postgres')).rejects.toMatchObject(refused(/which is gone/));
    await expect(startEmbeddedPostgres({ dataDir: 'data/postgres' })).rejects.toMatchObject(
      refused(/which is gone/),
    );
    expect(await findEmbeddedPostgres(join(folder, 'none'))).toEqual({ state: 'none' });
  } finally {
    cwd.mockRestore();
  }
});
