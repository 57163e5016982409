import type { Command } from './command.ts';

/** Commands are loaded only when used: a container's `healthcheck` runs twice a minute and needs no other. */
const LOADERS: Readonly<Record<string, () => Promise<Command>>> = {
  run: async () => (await import('./run.ts')).run,
  demo: async () => (await import('./demo.ts')).demo,
  sandbox: async () => (await import('./sandbox.ts')).sandbox,
  doctor: async () => (await import('./doctor.ts')).doctor,
  status: async () => (await import('./status.ts')).status,
  show: async () => (await import('./show.ts')).show,
  sql: async () => (await import('./sql.ts')).sql,
  verify: async () => (await import('./verify.ts')).verify,
  export: async () => (await import('./export.ts')).exportFiles,
  follow: async () => (await import('./follow.ts')).follow,
  plan: async () => (await import('./plan.ts')).plan,
  config: async () => (await import('./config.ts')).config,
  migrate: async () => (await import('./migrate.ts')).migrate,
  refresh: async () => (await import('./refresh.ts')).refresh,
  pause: async () => (await import('./pause.ts')).pause,
  resume: async () => (await import('./pause.ts')).resume,
  healthcheck: async () => (await import('./healthcheck.ts')).healthcheck,
  completion: async () => (await import('./completion.ts')).createCompletion(loadCommands),
};

export const COMMAND_NAMES: readonly string[] = Object.keys(LOADERS);

/** Returns the command of this name, or undefined if there is none. */
export async function loadCommand(name: string): Promise<Command | undefined> {
  return Object.hasOwn(LOADERS, name) ? await LOADERS[name]?.() : undefined;
}

/** Returns every command by its name, as used for parsing, `--help`, the shells' completion and the README. */
export async function loadCommands(): Promise<ReadonlyMap<string, Command>> {
  const commands = Object.entries(LOADERS).map(async ([name, load]) => [name, await load()] as const);
  return new Map(await Promise.all(commands));
}
