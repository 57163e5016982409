/* Imported before everything else: the Postgres drivers read the environment too, one of them while it is loaded. */

/** Variables that are kept: both drivers use them alike, for what DATABASE_URL leaves open. */
const FILL_IN: ReadonlySet<string> = new Set([
  'PGHOST',
  'PGPORT',
  'PGUSER',
  'PGUSERNAME',
  'PGPASSWORD',
  'PGDATABASE',
]);

/**
 * Removes the other variables of the drivers. Each driver knows some of libpq's (PGTARGETSESSIONATTRS,
 * PGSSLNEGOTIATION) and many that libpq does not (PGMAX_LIFETIME), and their values cause errors that name no variable.
 * Settings for this program belong in DATABASE_URL.
 */
export function forgetDriverVariables(env: NodeJS.ProcessEnv = process.env): void {
  for (const name of Object.keys(env))
    if (/^(?:NODE_)?PG/.test(name) && !FILL_IN.has(name)) Reflect.deleteProperty(env, name);
}

forgetDriverVariables();
