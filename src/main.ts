// oxlint-disable-next-line import/no-unassigned-import -- what is imported after it reads the environment
import './own-environment.ts';
import { didYouMean, EXIT, helpOf, helpOfAll, readArguments, UsageError } from './cli/command.ts';
import { COMMAND_NAMES, loadCommand, loadCommands } from './cli/commands.ts';
import { withEnvFiles } from './cli/env-file.ts';
import { NoMirror, printError, scrubDebugOutput } from './cli/errors.ts';
import { endFirstProcess, endOnCrash, Stopped } from './cli/process.ts';
import { createPrinter } from './cli/terminal.ts';
import { ConfigError } from './config/config.ts';
import { errorCode, Misconfigured } from './lib/errors.ts';
import { forgetDriverVariables } from './own-environment.ts';
import { VERSION } from './version.ts';

const EXIT_GRACE_MS = 1000;

const { print, printed } = createPrinter(process.stdout);
let endsUnread = false;

async function main(words: readonly string[]): Promise<number> {
  const argv = withEnvFiles(words);
  forgetDriverVariables();
  const [first = '--help', ...rest] = argv;
  if (first === '--version' || first === '-V') return (print(VERSION), EXIT.ok);
  const asksForHelp = first === '--help' || first === '-h' || first === 'help';
  if (asksForHelp && rest.length === 0) return (print(helpOfAll(await loadCommands())), EXIT.ok);
  const [wanted, args] = asksForHelp ? [rest[0] ?? '', ['--help']] : [first, rest];
  // Without a command, options belong to `run`, the default.
  if (wanted.startsWith('-')) return await start('run', argv);
  return await start(wanted, args);
}

async function start(name: string, args: readonly string[]): Promise<number> {
  const command = await loadCommand(name);
  if (command === undefined)
    throw new UsageError([`${name}: no such command${didYouMean(name, COMMAND_NAMES)}; see --help`]);
  if (args.includes('--help') || args.includes('-h')) return (print(helpOf(name, command)), EXIT.ok);
  if (args.includes('--version') || args.includes('-V')) return (print(VERSION), EXIT.ok);
  const given = readArguments(command, args);
  endsUnread = command.endsUnread?.(given) ?? false;
  return await command.run({ ...given, print, printed });
}

const isUnread = (error: Error) => ['EPIPE', 'ERR_STREAM_DESTROYED'].includes(errorCode(error) ?? '');
// In `catalog-mirror sql … | head`, the reader may leave early. A command that does more than print still finishes, and
// its exit code says how that went.
process.stdout.on('error', (error) => {
  if (!isUnread(error)) throw error;
  if (endsUnread) process.exit(EXIT.ok);
});
process.stderr.on('error', (error) => {
  if (!isUnread(error)) throw error;
});
endFirstProcess();
scrubDebugOutput();
endOnCrash(printError);
try {
  process.exitCode = await main(process.argv.slice(2));
  await printed();
} catch (error) {
  printError(error);
  process.exitCode =
    error instanceof ConfigError ||
    error instanceof UsageError ||
    error instanceof NoMirror ||
    error instanceof Misconfigured
      ? EXIT.usage
      : EXIT.failed;
  // A program that is being stopped does not wait for a reader.
  if (!(error instanceof Stopped)) await printed();
}
// Whatever is still open now, such as a connection to a server that hangs, is not worth waiting for.
setTimeout(() => process.exit(), EXIT_GRACE_MS).unref();
