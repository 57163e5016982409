import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MEMORY = '/dev/shm';
const ROOM_BYTES = 6e9;

/**
 * Returns the folder for the tests' files: in memory if there is space and programs may run from it, because
 * hundreds of databases and clusters are created and dropped; otherwise the usual temporary folder.
 */
export function roomForFiles(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize > ROOM_BYTES && mayExecute(MEMORY) ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}

/** Containers often mount it noexec. */
function mayExecute(folder: string): boolean {
  const own = mkdtempSync(join(folder, 'catalog-mirror-test-'));
  try {
    const script = join(own, 'script');
    writeFileSync(script, '#!/bin/sh\n');
    chmodSync(script, 0o700);
    return spawnSync(script).status === 0;
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
}
