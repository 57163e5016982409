import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MEMORY = '/dev/shm';
const ROOM_BYTES = 6e9;

/**
 * Where tests have their files: in memory where there is room and programs may be started from it, as hundreds of
 * databases and clusters are made and dropped; else where all temporary files are.
 */
export function roomForFiles(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize > ROOM_BYTES && mayExecute(MEMORY) ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}

/** Containers often mount it without. */
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
