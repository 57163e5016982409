import { vi } from 'vitest';
import { readArguments } from '../../src/cli/command.ts';
import { loadCommand } from '../../src/cli/commands.ts';
import { explain } from '../../src/cli/errors.ts';
import { Misconfigured } from '../../src/lib/errors.ts';
import type { Sql } from '../../src/store/connection/db.ts';

export interface RanHere {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command in this process, if it prints through its argument, with this DATABASE_URL. */
export async function runHere(words: readonly string[], databaseUrl: string): Promise<RanHere> {
  const [name = '', ...args] = words;
  const command = await loadCommand(name);
  if (command === undefined) throw new Error(`no command ${name}`);
  const [stdout, stderr]: [string[], string[]] = [[], []];
  vi.stubEnv('DATABASE_URL', databaseUrl);
  const spy = vi.spyOn(process.stderr, 'write').mockImplementation((text) => stderr.push(String(text)) > 0);
  const print = (line: string) => void stdout.push(line);
  try {
    const printed = () => Promise.resolve();
    const code = await command.run({ ...readArguments(command, args), print, printed });
    return { code, stdout: stdout.join('\n'), stderr: stderr.join('') };
  } catch (error) {
    stderr.push(explain(error));
    return {
      code: error instanceof Misconfigured ? 78 : 1,
      stdout: stdout.join('\n'),
      stderr: stderr.join(''),
    };
  } finally {
    spy.mockRestore();
    vi.unstubAllEnvs();
  }
}

/** Returns the SQL behind `what to do:` in a message, statement by statement. */
function statementsIn({ stderr }: Pick<RanHere, 'stderr'>): string[] {
  const advice = [...stderr.matchAll(/^ {2}what to do: (.*)$/gm)].map(([, text = '']) => text);
  return advice.flatMap((text) => text.split('; ')).filter((text) => /^(?:ALTER|GRANT|CREATE) /.test(text));
}

const MOST = 6;

/**
 * Runs a command and does as an administrator what it prints, word for word, until it works. Returns what it
 * printed each time. Fails if that contains no statement, or one that Postgres rejects, or if it never ends.
 */
export async function advised(admin: Sql, words: readonly string[], url: string): Promise<string[]> {
  const said: string[] = [];
  for (let ran = await runHere(words, url); ran.code !== 0; ran = await runHere(words, url)) {
    const statements = statementsIn(ran);
    said.push(ran.stderr);
    if (statements.length === 0 || said.length > MOST) throw new Error(`no end to ${said.join('\n')}`);
    for (const statement of statements) await admin.unsafe(statement);
  }
  return said;
}
