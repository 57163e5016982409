import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { writeChanges } from '../../src/store/history/changes.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { FAST_SETTINGS } from '../postgres/server.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { eventually } from '../support/eventually.ts';
import { type Proxy, proxyTo } from '../support/proxy.ts';

/* An address with changing databases behind it, for consumers that each reach it through a proxy of their own. */

export const SKUS = ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'] as const;

/** Creates what a mirror contains before anybody follows it, and the consumers' tables in the same database. */
async function begin(sql: Sql): Promise<void> {
  await sql`
    insert into catalog.skus (sku, state, price_source, in_manifest, first_seen_at, priced_at)
    select sku, 'priced', 'snapshot', true, now(), now() from unnest(${[...SKUS]}::text[]) s(sku)`;
  await sql`
    insert into catalog.prices (sku, size, price, changed_at) select sku, '9', 100, now() from unnest(${[...SKUS]}::text[]) s(sku)`;
  await sql.unsafe(`create schema shop;
    create table shop.copy (sku text primary key, price int);
    create table shop.log (n bigserial primary key, position bigint unique, price int)`);
}

export abstract class Servers {
  /** How often something was lost that a consumer may have seen: a change, a position or its name. */
  losses = 0;
  /** Each price that is written is higher than all before it. */
  #price = 1000;
  protected newest = 1000;
  readonly #ways = new Set<Proxy>();

  abstract get sql(): Sql;
  protected abstract get url(): string;
  /** Makes a backup, which `restore` puts in place of the present state. */
  abstract keep(): Promise<void>;
  abstract restore(): Promise<void>;
  abstract end(): Promise<void>;

  /** Opens a proxy for one consumer, and returns it with the URL through it. */
  async way(): Promise<{ readonly proxy: Proxy; readonly url: string }> {
    const proxy = await proxyTo(this.url);
    this.#ways.add(proxy);
    return { proxy, url: Object.assign(new URL(this.url), { port: String(proxy.port) }).href };
  }

  /** Ends all disturbances. */
  heal(): void {
    for (const proxy of this.#ways) proxy.heal();
  }

  async write(skus: readonly string[]): Promise<void> {
    await this.sql.begin(async (tx) => {
      const moves = [];
      for (const sku of [...new Set(skus)].toSorted()) {
        this.#price += 1;
        const [was] = await tx<[{ price: number }]>`select price from catalog.prices where sku = ${sku}`;
        await tx`update catalog.prices set price = ${this.#price} where sku = ${sku}`;
        moves.push({ sku, size: '9', oldPrice: was.price, newPrice: this.#price });
      }
      await writeChanges(tx, { moves, fields: [] }, null);
    });
    this.newest = this.#price;
  }

  /** Replaces what is at the address, with all connections refused meanwhile, and counts a loss. */
  protected async replaced(work: () => Promise<void>): Promise<void> {
    for (const proxy of this.#ways) {
      proxy.set({ refuse: true });
      proxy.reset();
    }
    const before = await this.#known();
    await work();
    const after = await this.#known();
    const isAll =
      this.newest <= after.newest &&
      BigInt(before.position) <= BigInt(after.position) &&
      before.names.every((name) => after.names.includes(name));
    if (!isAll) this.losses += 1;
    this.newest = after.newest;
    for (const proxy of this.#ways) {
      proxy.aim(this.url);
      proxy.set({ refuse: false });
    }
  }

  /** A position may be given out, and a name created, before any change. */
  async #known(): Promise<{ newest: number; position: string; names: string[] }> {
    const [known] = await this.sql<[{ newest: number; position: string; names: string[] }]>`
      select greatest(1000, (select max(price) from catalog.prices)) as newest, catalog.changes_position()::text as position,
        array(select name from catalog_internal.followers) as names`;
    return known;
  }

  protected async endWays(): Promise<void> {
    await Promise.all([...this.#ways].map((proxy) => proxy[Symbol.asyncDispose]()));
  }
}

/** Databases of the run's shared server. */
export class Databases extends Servers {
  readonly #database: TestDatabase;
  #backup: TestDatabase | null = null;
  #sql: Sql;

  private constructor(database: TestDatabase) {
    super();
    this.#database = database;
    this.#sql = connect(database.url, { max: 1 });
  }

  static async make(): Promise<Databases> {
    const made = new Databases(await createDatabase('migrated'));
    await begin(made.sql);
    return made;
  }

  override get sql(): Sql {
    return this.#sql;
  }

  protected override get url(): string {
    return this.#database.url;
  }

  override async keep(): Promise<void> {
    await this.#without(async () => {
      const before = this.#backup;
      this.#backup = await createDatabase({ copyOf: this.url });
      await before?.drop();
    });
  }

  override async restore(): Promise<void> {
    const backup = this.#backup;
    if (backup === null) return;
    await this.#without(async () => {
      await this.#database.drop();
      await createDatabase({ copyOf: backup.url, named: this.url });
    });
  }

  override async end(): Promise<void> {
    await this.#sql.end({ timeout: 1 });
    await this.endWays();
    await this.#database.drop();
    await this.#backup?.drop();
  }

  /** Does something for which nobody may be connected. */
  async #without(work: () => Promise<void>): Promise<void> {
    await this.replaced(async () => {
      await this.#sql`
        select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
      await this.#sql.end({ timeout: 1 });
      await work();
      this.#sql = connect(this.url, { max: 1 });
    });
  }
}

const run = promisify(execFile);
const SETTINGS = {
  ...FAST_SETTINGS,
  synchronous_commit: 'on',
  full_page_writes: 'on',
  max_connections: '60',
  shared_buffers: '16MB',
  wal_level: 'replica',
  max_wal_senders: '8',
  wal_keep_size: '512MB',
  wal_sender_timeout: '2s',
  wal_receiver_timeout: '2s',
  wal_retrieve_retry_interval: '200ms',
  hot_standby: 'on',
  autovacuum: 'off',
};

interface Serving {
  readonly folder: string;
  readonly server: EmbeddedPostgres;
  readonly sql: Sql;
}

async function served(folder: string, settings: Readonly<Record<string, string>> = {}): Promise<Serving> {
  const server = await startEmbeddedPostgres({
    dataDir: join(folder, 'pg'),
    settings: { ...SETTINGS, ...settings },
  });
  return { folder, server, sql: connect(server.url, { max: 2 }) };
}

async function ended({ server, sql }: Serving, how: 'stopped' | 'crashed' = 'stopped'): Promise<void> {
  if (how === 'crashed') process.kill(server.pid, 'SIGQUIT');
  await sql.end({ timeout: 0 });
  await server.stop();
}

/** Servers of their own, with a standby that streams from the primary. */
export class Clusters extends Servers {
  readonly #room: string;
  #count = 0;
  #primary!: Serving;
  #standby: (Serving & { readonly stream: Proxy }) | null = null;
  #backup: string | null = null;

  private constructor(room: string) {
    super();
    this.#room = room;
  }

  /** Creates the data folder that each cluster starts with a copy of. `room` is an empty folder. */
  static async template(room: string): Promise<string> {
    const folder = join(room, 'template');
    const made = await served(folder);
    await migrateDatabase(made.server.url);
    await begin(made.sql);
    await ended(made);
    return folder;
  }

  static async make(room: string, template: string): Promise<Clusters> {
    const made = new Clusters(room);
    made.#primary = await served(await made.#copied(template));
    return made;
  }

  override get sql(): Sql {
    return this.#primary.sql;
  }

  protected override get url(): string {
    return this.#primary.server.url;
  }

  override async keep(): Promise<void> {
    this.#backup = await this.#backedUp();
  }

  override async restore(): Promise<void> {
    const backup = this.#backup;
    if (backup === null) return;
    await this.dropStandby();
    await this.replaced(async () => {
      await ended(this.#primary);
      this.#primary = await served(await this.#copied(backup));
    });
  }

  async restart(how: 'stopped' | 'crashed'): Promise<void> {
    await this.replaced(async () => {
      await ended(this.#primary, how);
      this.#primary = await served(this.#primary.folder);
    });
    this.#standby?.stream.aim(this.url);
  }

  async makeStandby(): Promise<void> {
    if (this.#standby !== null) return;
    const folder = await this.#backedUp();
    const stream = await proxyTo(this.url);
    const { username, password } = new URL(this.url);
    await this.#put(folder, 'standby.signal', '');
    const primary_conninfo = `host=127.0.0.1 port=${stream.port} user=${username} password=${decodeURIComponent(password)}`;
    this.#standby = { ...(await served(folder, { primary_conninfo })), stream };
  }

  /** From now on the standby receives nothing from the primary. */
  lag(): void {
    this.#standby?.stream.set({ blackHole: true });
  }

  async dropStandby(): Promise<void> {
    const standby = this.#standby;
    this.#standby = null;
    if (standby === null) return;
    await ended(standby);
    await standby.stream[Symbol.asyncDispose]();
  }

  /** Promotes the standby, with what it has, in place of the primary. */
  async failOver(how: 'stopped' | 'crashed'): Promise<void> {
    const standby = this.#standby;
    if (standby === null) return;
    await this.replaced(async () => {
      await ended(this.#primary, how);
      await standby.sql`select pg_promote()`;
      [this.#primary, this.#standby] = [standby, null];
    });
    await standby.stream[Symbol.asyncDispose]();
  }

  override async end(): Promise<void> {
    await this.dropStandby();
    await ended(this.#primary);
    await this.endWays();
  }

  /** `isLive`: the server is running, so files may vanish before they are copied. */
  async #copied(from: string, isLive = false): Promise<string> {
    const to = join(this.#room, `${process.pid}-${performance.now()}-${(this.#count += 1)}`);
    await run('cp', ['-a', from, to]).catch((error: unknown) => {
      if (!isLive) throw error;
    });
    return to;
  }

  async #put(folder: string, name: string, text: string): Promise<void> {
    await writeFile(join(folder, 'pg', name), text);
    await run('chown', ['--reference', join(folder, 'pg'), join(folder, 'pg', name)]);
  }

  /** Makes a base backup of the running primary. */
  async #backedUp(): Promise<string> {
    const { folder } = this.#primary;
    const session = await this.sql.reserve();
    try {
      await session`select pg_backup_start('drawn', true)`;
      const to = await this.#copied(folder, true);
      const [stop] = await session<[{ labelfile: string }]>`select labelfile from pg_backup_stop(false)`;
      await run('cp', ['-a', `${folder}/pg/pg_wal/.`, `${to}/pg/pg_wal/`]).catch(() => {});
      await run('rm', ['-f', join(to, 'pg/postmaster.pid'), join(to, 'pg/standby.signal')]);
      await this.#put(to, 'backup_label', stop.labelfile);
      return to;
    } finally {
      session.release();
    }
  }
}

export const settled = (check: () => Promise<string | null>, what: string) =>
  eventually(
    async () => {
      const missing = await check();
      if (missing !== null) throw new Error(missing);
    },
    { what, within: 30_000 },
  );
