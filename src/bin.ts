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
  // The same process, so that signals and supervisors reach the daemon itself.
  if (launch === 'again') {
    const flags = [...missingFlags(execArgv), ...execArgv];
    // Behind `--` Node.js leaves `--env-file` to the program; until here it has read that file by itself, in its own
    // way.
    process.execve?.(execPath, [execPath, ...flags, '--', ...argv.slice(1)], environmentGiven(argv));
  }
  // In one bundle with it, this would come after the drivers.
  await import('./own-environment.ts');
  await import('./main.ts');
}

/**
 * The environment without what Node.js has added to it from `--env-file`; undefined: as it is, also where the system
 * does not tell.
 */
function environmentGiven(words: readonly string[]): Record<string, string> | undefined {
  if (!words.some((word) => word.startsWith('--env-file'))) return undefined;
  try {
    return environmentIn(readFileSync('/proc/self/environ', 'utf8'));
  } catch {
    return undefined;
  }
}
