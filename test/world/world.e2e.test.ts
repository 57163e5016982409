import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { createDatabase } from '../support/db.ts';
import { startProgram, temporaryFolder } from '../support/process.ts';
import { runs } from '../support/soak.ts';
import { play } from './episode.ts';

/*
 * A daemon against a partner written from its rules alone, whose market moves. Each episode draws everything that the
 * rules leave open. SEED=n replays an episode; SOAK=20 plays twenty times as many.
 */

const given = process.env['SEED'];
const EPISODES = given === undefined ? runs(2) : 1;
/** How long the market moves (at least and at most), and the most SKUs that it begins with. */
const LENGTHS = { seconds: [10, 18], skus: 150 } as const;
/** Longest episode on a busy machine: the initial load, the moving market, and the rest. */
const LONGEST_MS = 800_000;

test.for(Array.from({ length: EPISODES }, () => Number(given ?? randomInt(2 ** 31))))(
  'the mirror shows only answered prices and true reasons, and equals the market once it rests (SEED=%i)',
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
