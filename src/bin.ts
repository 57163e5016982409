#!/usr/bin/env node
// This file and launch.ts use only syntax that Node.js 20 can parse, so that it can report its own age.
import { createRequire } from 'node:module';
import { broughtNode, launchOf, missingFlags, tooOld } from './launch.ts';

const CONFIGURATION = 78;

const { version, execPath, execArgv, argv, platform, arch } = process;
const launch = launchOf(version, execArgv, process.execve !== undefined);
if (launch === 'too-old') {
  const brought = broughtNode(platform, arch, createRequire(import.meta.url).resolve);
  process.stderr.write(tooOld(version, execPath, brought, argv[1] ?? ''));
  process.exitCode = CONFIGURATION;
} else {
  // The same process, so that signals and supervisors reach the daemon itself.
  if (launch === 'again')
    process.execve?.(execPath, [execPath, ...missingFlags(execArgv), ...execArgv, ...argv.slice(1)]);
  await import('./main.ts');
}
