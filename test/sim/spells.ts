import type { World } from '../../src/sandbox/index.ts';
import { type Draw, pick, pickWeighed } from './faults.ts';
import { REWORDED } from './lists.ts';
import type { Bend, Raw, SimPartner } from './partner.ts';
import type { Rig } from './rig.ts';

/** Starts what the partner does for a while, within its rules or out of order. Returns how it ends. */
type Spell = (partner: SimPartner, draw: Draw) => () => void;

const HOURS_23 = 23 * 3_600_000;

/** Behaviour that lasts longer than one answer. */
export const SPELLS: Readonly<Record<string, Spell>> = {
  'another body key': ({ settings }) => {
    settings.dialect.bulkBodyKey = 'items';
    return () => (settings.dialect.bulkBodyKey = 'skus');
  },
  'small calls only': ({ settings }, draw) => {
    settings.bulkLimit = 1 + draw(4);
    return () => (settings.bulkLimit = Infinity);
  },
  'refused SKUs': ({ world }, draw) => {
    const some = someOf(world, draw, 3);
    for (const sku of some) world.setRefused(sku, true);
    return () => {
      for (const sku of some) world.setRefused(sku, false);
    };
  },
  'failing SKUs': ({ world }, draw) => {
    const some = draw(2) === 0 ? [...world.truth().keys()] : someOf(world, draw, 3);
    for (const sku of some) world.setFailing(sku, true);
    return () => {
      for (const sku of some) world.setFailing(sku, false);
    };
  },
  incident: ({ world }, draw) => {
    world.setIncident(true);
    return () => {
      world.setIncident(false);
      // When it ends, more may stay live-priced than there were.
      if (draw(2) === 0) for (const sku of someOf(world, draw, 6)) world.cross(sku, 'live');
    };
  },
  'no delta': (partner) =>
    bending(partner, 'delta', () => ({ status: 500, body: { errorMessage: 'Internal Server Error' } })),
  'deltas from a cache': (partner) => {
    partner.deltaCache = new Map();
    return () => {
      partner.deltaCache = null;
    };
  },
  // Like a server that lags behind: asked with a token newer than its own, it has nothing to report. Asked with an
  // older one, as by another daemon, it would report what has changed since.
  'deltas that go back': (partner) => {
    let first: Raw | undefined;
    const newer = new Set<string>();
    let isBack = false;
    return bending(partner, 'delta', (own, since) => {
      if ('failed' in own || own.status !== 200) return own;
      if (first !== undefined && !newer.has(since ?? '')) return own;
      newer.add(String((own.body as { to_snapshot?: unknown }).to_snapshot));
      isBack = !isBack && first !== undefined;
      first ??= own;
      return isBack ? withMember(first, { changed: [], removed: [], now_live: [] }) : own;
    });
  },
  'an old manifest': (partner) => {
    let first: Raw | undefined;
    return bending(partner, 'manifest', (own) => (first ??= own));
  },
  'a date of tomorrow': (partner) => {
    const ahead = () => new Date(partner.settings.now() + HOURS_23).toISOString();
    return bending(partner, 'manifest', (own) => withMember(own, { generated_at: ahead() }));
  },
  'an empty file': (partner) =>
    bending(partner, 'manifest', (own) => {
      partner.fileIsEmpty = true;
      return withMember(own, { sku_count: 0, live_priced_sku_count: 0 });
    }),
  ...Object.fromEntries(
    Object.entries(REWORDED).map(([name, [route, bend]]): [string, Spell] => [
      name,
      (partner, draw) => bending(partner, route, bend(partner, draw)),
    ]),
  ),
};

/** The weight of spells whose effect shows only if the same is asked again within minutes, or only for few SKUs. */
const OFTEN: Readonly<Record<string, number>> = {
  'deltas from a cache': 3,
  'some records from a cache': 3,
  'failing SKUs': 2,
  'small calls only': 2,
};
const WEIGHED = Object.keys(SPELLS).map((name): [number, string] => [OFTEN[name] ?? 1, name]);

/** The spells of one history: now and then one begins or ends. */
export class Spells {
  readonly #partner: SimPartner;
  readonly #draw: Draw;
  readonly #ends = new Map<string, () => void>();

  constructor(partner: SimPartner, draw: Draw) {
    this.#partner = partner;
    this.#draw = draw;
  }

  /** Whether the whole catalog is live-priced at present. */
  get incident(): boolean {
    return this.#ends.has('incident');
  }

  /** Starts a spell that is not active, or ends it. Returns which. */
  turn(): string {
    const [name] = pickWeighed(WEIGHED, this.#draw);
    const end = this.#ends.get(name);
    if (end === undefined) this.#ends.set(name, SPELLS[name]?.(this.#partner, this.#draw) ?? (() => {}));
    else this.#stop(name, end);
    return `${name} ${end === undefined ? 'begins' : 'ends'}`;
  }

  /** Ends all spells. */
  end(): void {
    for (const [name, end] of this.#ends) this.#stop(name, end);
    this.#partner.ambiguities.enabled = false;
  }

  #stop(name: string, end: () => void): void {
    end();
    this.#ends.delete(name);
  }
}

/** Causes recurring errors of the catalog itself. */
export function disturb(world: World, draw: Draw): void {
  const ways: (() => void)[] = [
    () => world.breakChain(),
    () => world.expireSnapshots(1),
    () => world.stopBuilder(),
    () => world.startBuilder(),
    () => world.startBuilder(),
    () => world.revokeUrls(),
    () => world.setFailing(pick([...world.truth().keys()], draw), true),
  ];
  pick(ways, draw)();
}

/** Watches a SKU, perhaps one that no manifest lists. */
export async function watchSome(rig: Rig, draw: Draw): Promise<void> {
  const all = [...rig.partner.world.truth().values()];
  const unlisted = all.filter(({ listed }) => !listed);
  const { sku } = pick(unlisted.length > 0 && draw(2) === 0 ? unlisted : all, draw);
  await rig.sql`insert into catalog.watchlist (sku) values (${sku}) on conflict do nothing`;
  rig.note('watched');
}

/** Returns what in an answer shows an active spell, for the count of what was drawn. */
export function spellIn(route: string, raw: Raw): string | null {
  if ('failed' in raw || route !== 'bulk') return null;
  if (raw.status === 504) return 'call too large';
  if (raw.status === 400) return 'call refused for a SKU';
  const { errors = [] } = raw.body as { errors?: unknown[] };
  return errors.length > 0 ? 'SKU in errors' : null;
}

function bending(partner: SimPartner, route: 'bulk' | 'delta' | 'manifest', bend: Bend): () => void {
  partner.bends.set(route, bend);
  return () => {
    if (partner.bends.get(route) === bend) partner.bends.delete(route);
    partner.fileIsEmpty = false;
  };
}

function withMember(own: Raw, members: object): Raw {
  if ('failed' in own || own.status !== 200) return own;
  return { status: 200, body: { ...(own.body as object), ...members } };
}

function someOf(world: World, draw: Draw, most: number): string[] {
  const skus = [...world.truth().keys()];
  return Array.from({ length: 1 + draw(most) }, () => pick(skus, draw));
}
