import { type Command, EXIT, helpOf, readArguments, UsageError } from './cli/command.ts';
import { complain } from './cli/complain.ts';
import { endOnCrash } from './cli/crash.ts';
import { ConfigError } from './config.ts';
import { VERSION } from './version.ts';

/** Each is loaded when it is wanted: a container's `healthcheck` has no use for the rest, and runs twice a minute. */
const COMMANDS: ReadonlyMap<string, () => Promise<Command>> = new Map(
  Object.entries({
    run: async () => (await import('./cli/run.ts')).run,
    demo: async () => (await import('./cli/demo.ts')).demo,
    sandbox: async () => (await import('./cli/sandbox.ts')).sandbox,
    doctor: async () => (await import('./cli/doctor.ts')).doctor,
    status: async () => (await import('./cli/status.ts')).status,
    plan: async () => (await import('./cli/plan.ts')).plan,
    migrate: async () => (await import('./cli/migrate.ts')).migrate,
    refresh: async () => (await import('./cli/refresh.ts')).refresh,
    healthcheck: async () => (await import('./cli/healthcheck.ts')).healthcheck,
  }),
);

const EXIT_GRACE_MS = 1000;

const print = (line: string) => void process.stdout.write(`${line}\n`);
async function help(): Promise<string> {
  const commands = await Promise.all(
    [...COMMANDS].map(async ([name, load]) => [name, await load()] as const),
  );
  return [
    'catalog-mirror: keeps your Postgres a true, fresh mirror of the marketplace catalog',
    '',
    'Usage: catalog-mirror [command] [options]      without a command: run',
    '',
    ...commands.map(([name, { summary }]) => `  ${name.padEnd(13)}${summary}`),
    '',
    '`catalog-mirror <command> --help` tells more. Settings come from the environment; see the README.',
  ].join('\n');
}

async function main(argv: readonly string[]): Promise<number> {
  const [first = 'run', ...rest] = argv;
  if (first === '--version' || first === '-V') return (print(VERSION), EXIT.ok);
  if (first === '--help' || first === '-h' || first === 'help') return (print(await help()), EXIT.ok);
  // Options alone belong to `run`, which is what no command means.
  const [name, args] = first.startsWith('-') ? ['run', argv] : [first, rest];
  const load = COMMANDS.get(name);
  if (load === undefined) throw new UsageError([`${name}: no such command; see --help`]);
  const command = await load();
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
