import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { createDatabase } from '../support/db.ts';
import { startProgram, temporaryFolder } from '../support/process.ts';
import { runs } from '../support/soak.ts';
import { play } from './episode.ts';

/*
 * A partner that was written from its rules alone, with a truth of its own that moves, and all that the
 * rules leave open drawn anew in each episode. SEED=n replays one; SOAK=20 plays twenty times as many.
 */

const given = process.env['SEED'];
const EPISODES = given === undefined ? runs(2) : 1;
/** How long the market moves, and how many SKUs it has at most. */
const LENGTHS = { seconds: [10, 18], skus: 150 } as const;
/** Of an episode, on a machine with much else to do: to load, to rest, and in between. */
const LONGEST_MS = 800_000;

test.for(Array.from({ length: EPISODES }, () => Number(given ?? randomInt(2 ** 31))))(
  'shows nothing that was not answered, says why, and is as the market is once that rests (SEED=%i)',
  { timeout: LONGEST_MS },
  async (seed) => {
    const database = await createDatabase('migrated');
    const sql = connect(database.url, { max: 2 });
    const folder = await temporaryFolder();
    try {
      const told = await play(
        seed,
        {
          sql,
          databaseUrl: database.url,
          redisUrl: inject('redisUrl'),
          secretFile: join(folder, 'secret'),
          start: (env) => startProgram(['run'], env),
        },
        LENGTHS,
      );
      if (told.faults.length > 0) console.log(JSON.stringify({ ...told, requests: undefined }, null, 1));
      expect(told.faults).toEqual([]);
    } finally {
      await sql.end({ timeout: 2 });
      await database.drop();
    }
  },
);
