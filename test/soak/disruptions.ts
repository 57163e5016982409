import type { Daemon } from './daemon.ts';
import { PARTNER_DISRUPTIONS } from './partner-disruptions.ts';
import type { Site } from './site.ts';

/** What a disruption acts on, and its source of randomness. */
export interface Scene {
  readonly site: Site;
  readonly sandbox: Site['sandbox'];
  readonly random: () => number;
  /** Keeps the names of SKUs until the disruption ends. */
  readonly remember: (sku: string) => void;
  readonly remembered: () => readonly string[];
}

/** Something that goes wrong, either at once or until `end`. */
export interface Disruption {
  readonly name: string;
  /** The longest it lasts. */
  readonly seconds?: number;
  /** Returns why it is impossible here. */
  readonly missing?: (site: Site) => string | null;
  readonly begin: (scene: Scene) => void | Promise<void>;
  readonly end?: (scene: Scene) => void | Promise<void>;
}

const daemonOf = ({ site, random }: Scene): Daemon =>
  site.daemons[Math.floor(random() * site.daemons.length)] as Daemon;

/** The first daemon is never killed, because its memory is watched over the whole run. */
const mortal = ({ site }: Scene): Daemon => site.daemons.at(-1) as Daemon;

const paused = new Set<Daemon>();

/** Returns a disruption in which a clock is off by `hours` for a while. */
const clock = (of: 'database' | 'daemons', hours: number): Disruption => ({
  name: `the clock of the ${of} is ${Math.abs(hours)} h ${hours < 0 ? 'behind' : 'ahead'}`,
  seconds: 20,
  missing: ({ clocks }) => (clocks === null ? 'there is no libfaketime (apt install faketime)' : null),
  begin: ({ site }) => site.clocks?.set(of, hours),
  end: ({ site }) => site.clocks?.set(of, 0),
});

export const DISRUPTIONS: readonly Disruption[] = [
  {
    name: 'kill -9',
    async begin(scene) {
      const daemon = mortal(scene);
      await daemon.end('SIGKILL');
      daemon.start();
    },
  },
  {
    name: 'a restart',
    async begin(scene) {
      const daemon = mortal(scene);
      await daemon.end('SIGTERM');
      daemon.start();
    },
  },
  {
    name: 'a daemon frozen',
    seconds: 60,
    begin(scene) {
      const daemon = daemonOf(scene);
      daemon.pause();
      paused.add(daemon);
    },
    end: () => {
      for (const daemon of paused) daemon.resume();
      paused.clear();
    },
  },
  {
    name: 'both daemons frozen',
    seconds: 15,
    begin: ({ site }) => {
      for (const daemon of site.daemons) daemon.pause();
    },
    end: ({ site }) => {
      for (const daemon of site.daemons) daemon.resume();
    },
  },
  { name: 'all sessions terminated', begin: ({ site }) => site.terminateSessions() },
  { name: 'a crash of Postgres', begin: ({ site }) => site.crashPostgres() },
  {
    // Sockets that stay open but carry nothing.
    name: 'connections to Postgres fall silent',
    seconds: 40,
    begin: ({ site }) => site.database.set({ blackHole: true }),
    end: ({ site }) => site.database.heal(),
  },
  { name: 'connections to Postgres are reset', begin: ({ site }) => void site.database.reset() },
  {
    name: 'Postgres is far away',
    seconds: 30,
    begin: ({ site }) => site.database.set({ latencyMs: 40 }),
    end: ({ site }) => site.database.heal(),
  },
  { name: "the queues' store is emptied", begin: ({ site }) => site.emptyQueues(1) },
  { name: "half of the queues' store is gone", begin: ({ site }) => site.emptyQueues(0.5) },
  {
    name: 'the disk is full',
    seconds: 15,
    missing: ({ disk }) => (disk === null ? 'a disk of its own needs root (mount -t tmpfs)' : null),
    begin: ({ site }) => site.disk?.fill(),
    end: ({ site }) => site.disk?.free(),
  },
  clock('database', 24 * 8),
  clock('database', -1),
  clock('daemons', 1),
  clock('daemons', -1),
  ...PARTNER_DISRUPTIONS,
];
