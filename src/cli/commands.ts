import type { Command } from './command.ts';
import { createCompletion } from './completion.ts';
import { demo } from './demo.ts';
import { doctor } from './doctor.ts';
import { healthcheck } from './healthcheck.ts';
import { migrate } from './migrate.ts';
import { plan } from './plan.ts';
import { refresh } from './refresh.ts';
import { run } from './run.ts';
import { sandbox } from './sandbox.ts';
import { status } from './status.ts';

const completion = createCompletion(() => COMMANDS);

/** Every command by its name: what is parsed, what `--help`, the shells' completion and the README show. */
export const COMMANDS: ReadonlyMap<string, Command> = new Map(
  Object.entries({
    run,
    demo,
    sandbox,
    doctor,
    status,
    plan,
    migrate,
    refresh,
    healthcheck,
    completion,
  }),
);
