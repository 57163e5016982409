import { processSources } from '../../config/config.ts';
import type { createWebhook } from '../../follow/webhook.ts';
import { plural } from '../../lib/format.ts';
import { shownJson } from '../../lib/json.ts';
import type { Sql } from '../../store/connection/db.ts';
import {
  deleteLetter,
  discardLetters,
  listDeadLetters,
  noteAttempt,
  readLetter,
  forgetFollower,
  readFollowers,
} from '../../store/history/follower-list.ts';
import { EXIT } from '../command.ts';
import { tableOf, terminalOf } from '../terminal.ts';

type Print = (line: string) => void;

function printRows(rows: readonly object[], json: boolean, print: Print, none: string): void {
  if (json) for (const row of rows) print(shownJson(row));
  else if (rows.length === 0) print(none);
  else for (const line of tableOf(rows, terminalOf(process.stdout, processSources.env).width)) print(line);
}

/** Prints every follower, and how far it is behind. */
export async function listFollowers(sql: Sql, json: boolean, print: Print): Promise<number> {
  printRows(await readFollowers(sql), json, print, 'nobody follows with a name');
  return EXIT.ok;
}

/** Prints what a follower's receiver has refused for good. */
export async function listLetters(
  sql: Sql,
  { name, json }: { readonly name: string; readonly json: boolean },
  print: Print,
): Promise<number> {
  printRows(await listDeadLetters(sql, name), json, print, `${name} has no dead letters`);
  return EXIT.ok;
}

/** Posts dead letters again, oldest first, until one is refused. */
export async function resend(
  sql: Sql,
  name: string,
  receiver: ReturnType<typeof createWebhook>,
  print: Print,
): Promise<number> {
  const letters = await listDeadLetters(sql, name);
  try {
    for (const [sent, { id, changes, positionFrom, positionTo }] of letters.entries()) {
      const letter = await readLetter(sql, id);
      if (letter === null) continue;
      const result = await receiver.send(letter, new AbortController().signal);
      if (result.outcome !== 'delivered') {
        await noteAttempt(sql, id, result);
        throw Object.assign(
          new Error(
            `${sent} of ${letters.length} dead letters were taken; of the next the receiver says: ` +
              [result.status, result.said].filter((part) => part !== null).join(' '),
          ),
          { hint: 'correct the receiver and try again, or delete them with --discard' },
        );
      }
      await deleteLetter(sql, id);
      print(`${changes} ${plural(changes, 'change')}, positions ${positionFrom} to ${positionTo}: taken`);
    }
  } finally {
    await receiver.close();
  }
  if (letters.length === 0) print(`${name} has no dead letters`);
  return EXIT.ok;
}

/** Deletes all dead letters of a follower, and prints how many. Returns the exit code. */
export async function discard(sql: Sql, name: string, print: Print): Promise<number> {
  const letters = await discardLetters(sql, name);
  print(`${letters} ${plural(letters, 'dead letter')} deleted`);
  return EXIT.ok;
}

/**
 * Deletes a follower with its position and dead letters. Returns the exit code.
 *
 * @throws Error with a hint if nobody has this name
 */
export async function forget(sql: Sql, name: string, print: Print): Promise<number> {
  const letters = await forgetFollower(sql, name);
  if (letters === null)
    throw Object.assign(new Error(`nobody has followed as ${name}`), {
      hint: '`catalog-mirror follow --list` shows all names',
    });
  print(
    `${name} is forgotten${letters === 0 ? '' : `, and with it ${letters} ${plural(letters, 'dead letter')}`}`,
  );
  return EXIT.ok;
}
