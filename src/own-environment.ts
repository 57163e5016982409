/*
 * Imported before all else: the drivers of Postgres read the environment too, one of them while it is loaded.
 */

/** Of the variables that they read, those that fill in what DATABASE_URL leaves open, in both drivers alike. */
const FILL_IN: ReadonlySet<string> = new Set([
  'PGHOST',
  'PGPORT',
  'PGUSER',
  'PGUSERNAME',
  'PGPASSWORD',
  'PGDATABASE',
]);

/**
 * Takes the others out. Each driver knows some of libpq's (PGTARGETSESSIONATTRS, PGSSLNEGOTIATION) and many that libpq
 * does not (PGMAX_LIFETIME), and fails by them with errors that name no variable. What is meant for this program stands
 * in DATABASE_URL.
 */
export function forgetDriverVariables(env: NodeJS.ProcessEnv = process.env): void {
  for (const name of Object.keys(env))
    if (/^(?:NODE_)?PG/.test(name) && !FILL_IN.has(name)) Reflect.deleteProperty(env, name);
}

forgetDriverVariables();
