#!/usr/bin/env node
// This file and launch.ts use only syntax that Node.js 20 can parse, so that it can report its own age.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { broughtNode, environmentIn, launchOf, missingFlags, tooOld } from './launch.ts';

const CONFIGURATION = 78;

const { version, execPath, execArgv, argv, platform, arch } = process;
const launch = launchOf(version, execArgv, process.execve !== undefined);
if (launch === 'too-old') {
  const brought = broughtNode(platform, arch, createRequire(import.meta.url).resolve);
  process.stderr.write(tooOld(version, execPath, brought, argv[1] ?? ''));
  process.exitCode = CONFIGURATION;
} else {
  // Replaces the program in the same process, so that signals and supervisors reach the daemon itself.
  if (launch === 'again') {
    const flags = [...missingFlags(execArgv), ...execArgv];
    // Node.js has already loaded the file of `--env-file` in its own way, so the environment is restored. After `--` it
    // leaves the option to the program.
    process.execve?.(execPath, [execPath, ...flags, '--', ...argv.slice(1)], environmentGiven(argv));
  }
  // Imported separately, because within one bundle this would run after the drivers are loaded.
  await import('./own-environment.ts');
  await import('./main.ts');
}

/**
 * Returns the environment without what Node.js added to it from `--env-file`. Returns undefined if nothing was added,
 * or if the system does not show the original environment.
 */
function environmentGiven(words: readonly string[]): Record<string, string> | undefined {
  if (!words.some((word) => word.startsWith('--env-file'))) return undefined;
  try {
    return environmentIn(readFileSync('/proc/self/environ', 'utf8'));
  } catch {
    return undefined;
  }
}
