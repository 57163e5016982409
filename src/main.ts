#!/usr/bin/env node
import { type Command, EXIT, helpOf, readArguments, UsageError } from './cli/command.ts';
import { complain } from './cli/complain.ts';
import { endOnCrash } from './cli/crash.ts';
import { demo } from './cli/demo.ts';
import { doctor } from './cli/doctor.ts';
import { healthcheck } from './cli/healthcheck.ts';
import { migrate } from './cli/migrate.ts';
import { plan } from './cli/plan.ts';
import { refresh } from './cli/refresh.ts';
import { run } from './cli/run.ts';
import { sandbox } from './cli/sandbox.ts';
import { status } from './cli/status.ts';
import { ConfigError } from './config.ts';
import { VERSION } from './version.ts';

const COMMANDS: ReadonlyMap<string, Command> = new Map(
  Object.entries({ run, demo, sandbox, doctor, status, plan, migrate, refresh, healthcheck }),
);

const EXIT_GRACE_MS = 1000;

const print = (line: string) => void process.stdout.write(`${line}\n`);
function help(): string {
  return [
    'catalog-mirror: keeps your Postgres a true, fresh mirror of the marketplace catalog',
    '',
    'Usage: catalog-mirror [command] [options]      without a command: run',
    '',
    ...[...COMMANDS].map(([name, { summary }]) => `  ${name.padEnd(13)}${summary}`),
    '',
    '`catalog-mirror <command> --help` tells more. Settings come from the environment; see the README.',
  ].join('\n');
}

async function main(argv: readonly string[]): Promise<number> {
  const [first = 'run', ...rest] = argv;
  if (first === '--version' || first === '-V') return (print(VERSION), EXIT.ok);
  if (first === '--help' || first === '-h' || first === 'help') return (print(help()), EXIT.ok);
  const named = COMMANDS.get(first);
  // Options alone belong to `run`, which is what no command means.
  const [name, command, args] =
    named === undefined && first.startsWith('-') ? ['run', run, argv] : [first, named, rest];
  if (command === undefined) throw new UsageError([`${name}: no such command; see --help`]);
  if (args.includes('--help') || args.includes('-h')) return (print(helpOf(name, command)), EXIT.ok);
  if (args.includes('--version')) return (print(VERSION), EXIT.ok);
  return await command.run({ ...readArguments(command, args), print });
}

endOnCrash(complain);
try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  complain(error);
  process.exitCode = error instanceof ConfigError || error instanceof UsageError ? EXIT.usage : EXIT.failed;
}
// What is still open now (a connection to a server that hangs) is nothing to wait for.
setTimeout(() => process.exit(), EXIT_GRACE_MS).unref();
