import { once } from 'node:events';
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { writeParquet } from '../../src/cli/export-parquet.ts';
import { createPendingFile } from '../../src/cli/export-pending-file.ts';

async function folderOf(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'pending-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

test('two processes that write a file of the same name at once do not mix their contents', async () => {
  const folder = await folderOf();
  const path = join(folder, 'prices.parquet');
  // As in two containers on one volume, where each process has pid 1.
  const [one, two] = [await createPendingFile(path, true), await createPendingFile(path, true)];
  await one.handle.write('the first, and longer than the other');
  await two.handle.write('the second');
  await one.finish();
  await one.commit();
  await one.dispose();
  expect(await readFile(path, 'utf8')).toBe('the first, and longer than the other');
  await two.finish();
  await two.commit();
  await two.dispose();
  expect(await readFile(path, 'utf8')).toBe('the second');
  expect(await readdir(folder)).toEqual(['prices.parquet']);
});

test('a file that is not committed leaves nothing behind', async () => {
  const folder = await folderOf();
  const file = await createPendingFile(join(folder, 'x'), false);
  await file.handle.write('half');
  await file.dispose();
  expect(await readdir(folder)).toEqual([]);
});

/**
 * Makes a socket, which stands in for a device (only root can make one): it has a name but is not a regular file.
 */
async function socketAt(path: string): Promise<void> {
  const server = createServer().listen(path);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
}

test.each([
  ['a socket', socketAt],
  [
    'a link to one',
    async (path: string) => {
      await socketAt(`${path}.s`);
      await symlink(`${path}.s`, path);
    },
  ],
  ['a folder', (path: string) => mkdir(path)],
])('%s is not replaced by a file, and the attempt fails at once', async (_, make) => {
  const path = join(await folderOf(), 'x');
  await make(path);
  const before = await lstat(path);
  await expect(createPendingFile(path, true)).rejects.toMatchObject({
    kind: 'not-written',
    hint: expect.stringContaining('no regular file'),
  });
  expect((await lstat(path)).ino).toBe(before.ino);
});

test('a link to a file is replaced', async () => {
  const folder = await folderOf();
  await writeFile(join(folder, 'a'), 'old');
  await symlink('a', join(folder, 'x'));
  const file = await createPendingFile(join(folder, 'x'), true);
  await file.handle.write('new');
  await file.finish();
  await file.commit();
  expect(await readFile(join(folder, 'x'), 'utf8')).toBe('new');
});

test.each(['sync', 'close'] as const)(
  'a disk that reports only at %s that it is full is reported like one that does earlier',
  async (when) => {
    const folder = await folderOf();
    const file = await createPendingFile(join(folder, 'x'), false);
    await file.handle.write('more than there is room for');
    const full = Object.assign(new Error('ENOSPC: no space left on device, fsync'), { code: 'ENOSPC' });
    const close = file.handle.close.bind(file.handle);
    onTestFinished(close);
    Object.assign(file.handle, { [when]: () => Promise.reject(full) });
    await expect(file.finish()).rejects.toMatchObject({ kind: 'not-written', cause: full });
    await file.dispose();
    expect(await readdir(folder)).toEqual([]);
  },
);

test('only errors of the file itself are reported as not-written, not a broken connection with the same syscall', async () => {
  const folder = await folderOf();
  const file = await createPendingFile(join(folder, 'x'), false);
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { syscall: 'write' });
  const reset = Object.assign(new Error('write ECONNRESET'), { code: 'ECONNRESET', syscall: 'write' });
  const failing = async function* (): AsyncGenerator<never> {
    yield await Promise.reject(reset);
  };
  await expect(writeParquet(file, [{ name: 'sku', type: 'text' }], failing(), () => {})).rejects.toBe(reset);
  Object.assign(file.handle, { appendFile: () => Promise.reject(full) });
  await expect(file.appendFile(Buffer.from('more'))).rejects.toMatchObject({
    kind: 'not-written',
    cause: full,
  });
  await file.dispose();
});

test('if a folder has taken the name meanwhile, the commit fails and leaves the folder unchanged', async () => {
  const folder = await folderOf();
  const file = await createPendingFile(join(folder, 'x'), true);
  await file.finish();
  await mkdir(join(folder, 'x'));
  await expect(file.commit()).rejects.toMatchObject({ kind: 'not-written' });
  await file.dispose();
  expect(await readdir(folder)).toEqual(['x']);
});
