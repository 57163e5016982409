import { formatAge } from '../lib/duration.ts';
import { count, plural } from '../lib/format.ts';
import { atWorkText, type StatementAtWork, waitsForStandby } from '../store/connection/at-work.ts';
import { REMEDIES } from '../store/connection/remedies.ts';
import type { StoreFailure } from '../store/connection/sql-errors.ts';
import { holderRemedy, holderText, type LockHolder, snapshotHolderText } from '../store/status/holders.ts';
import { backlogReasons, lateReasons, massMoveReasons, scopeReasons } from './catalog.ts';
import type { Facts } from './facts.ts';
import { failingCalls, failingTasks, notStoredReasons } from './failing.ts';
import { reasonsWhilePaused } from './pause.ts';
import { clockReasons, progressReasons } from './progress.ts';
import {
  broken,
  degraded,
  held,
  MIRROR_STATES,
  type MirrorState,
  type Reason,
  type ReasonCode,
} from './reason.ts';

/** The one judgement that `/readyz`, `status`, its JSON, the page and the metrics show. */
export interface Health {
  readonly state: MirrorState;
  /** Worst first; empty if the mirror is healthy. */
  readonly reasons: readonly Reason[];
}

/** What a process knows in addition to Postgres. Sentences to show; null: nothing is wrong. */
export interface OwnFacts {
  /** Why the mirror cannot be read, and what to do. */
  readonly unreadable: string | null;
  readonly queues: string | null;
  readonly storeFailure: StoreFailure | null;
  /** Evidence against the credential of this process only. */
  readonly refused: string | null;
  /** A clock other than Postgres's differs from the others. */
  readonly clock: string | null;
  /** Times from a clock that was ahead, which Postgres refuses to correct: why, and what to do. */
  readonly notPutRight: { readonly part: string; readonly problem: string; readonly hint: string } | null;
  /** The queues deliver no jobs. */
  readonly silent: string | null;
}

/** The facts of a process without queues and requests of its own. */
export const NO_OWN_FACTS: OwnFacts = {
  unreadable: null,
  queues: null,
  storeFailure: null,
  refused: null,
  clock: null,
  notPutRight: null,
  silent: null,
};

/**
 * Judges the mirror. Pure: it gets everything it needs, with times by Postgres's clock. `facts` null: the mirror
 * could not be read, and `own.unreadable` says why.
 */
export function judgeHealth(facts: Facts | null, own: OwnFacts = NO_OWN_FACTS): Health {
  const found = [
    ...ownReasons(facts, own),
    ...(facts === null ? [] : reasonsWhilePaused(mirrorReasons(facts), facts.pace.paused, facts.now)),
  ];
  const reasons = MIRROR_STATES.toReversed().flatMap((state) => found.filter(({ level }) => level === state));
  return { state: reasons[0]?.level ?? 'healthy', reasons };
}

const mirrorReasons = (facts: Facts): Reason[] => [
  ...lockReasons(facts),
  ...slowReasons(facts),
  ...held([snapshotHeld(facts)]),
  ...clockReasons(facts),
  ...progressReasons(facts),
  ...refusalReasons(facts),
  ...catalogReasons(facts),
  ...backlogReasons(facts),
  ...watchlistReasons(facts),
  ...scopeReasons(facts),
  ...massMoveReasons(facts),
  ...lateReasons(facts),
  ...notStoredReasons(facts),
];

const UNREADY: readonly ReasonCode[] = ['postgres-unavailable', 'queues-unavailable', 'no-baseline'];

/**
 * Returns why `/readyz` answers 503: Postgres or the queues do not answer, or there is no baseline yet. Null: 200.
 */
export function unreadyReason({ reasons }: Health): Reason | null {
  const unready = UNREADY.map((unreadyCode) => reasons.find(({ code }) => code === unreadyCode));
  return unready.find((reason) => reason !== undefined) ?? null;
}

function ownReasons(facts: Facts | null, own: OwnFacts): Reason[] {
  const { unreadable, queues, storeFailure, refused, clock, notPutRight, silent } = own;
  const away: Reason = {
    code: 'postgres-unavailable',
    level: 'broken',
    text: unreadable ?? POSTGRES_AWAY,
    hint: null,
  };
  return held([
    facts === null && away,
    queues !== null &&
      degraded(
        'queues-unavailable',
        `${queues}; this daemon runs what is due by itself`,
        'check the server that REDIS_URL (or else DATABASE_URL) names',
      ),
    storeFailure !== null &&
      broken(
        'store-paused',
        `Postgres rejects writes (${storeFailure}); sync is paused and retries by itself`,
        REMEDIES[storeFailure].hint,
      ),
    refused !== null &&
      degraded('own-credential', refused, 'check PARTNER_API_KEY and PARTNER_SECRET of this daemon'),
    clock !== null && degraded('clock', clock, 'set the one that is wrong, and see to its time service'),
    notPutRight !== null &&
      degraded(
        'clock',
        `Postgres refuses to put times of ${notPutRight.part} right that it wrote while its clock was ahead (${notPutRight.problem})`,
        notPutRight.hint,
      ),
    silent !== null &&
      degraded(
        'queues-silent',
        silent,
        'its schedules are put back; if it lasts, `catalog-mirror doctor` says what the queues refuse, or restart the daemon',
      ),
  ]);
}

/** Returns a reason for each lock that the mirror waits for, however well the rest is doing. */
function lockReasons({ lockHolders }: Facts): Reason[] {
  return lockHolders.map((holder) =>
    degraded(
      'locked',
      `${holderText(holder)}, and the mirror has waited ${formatAge(holder.seconds)} for it`,
      holderRemedy(holder),
    ),
  );
}

const slowText = (statement: StatementAtWork): string =>
  `a statement of the mirror (process ${statement.pid} of Postgres) has run for ${formatAge(statement.seconds)}: ${atWorkText(statement)}`;

/**
 * Returns a reason for each slow statement: what sellers attach to the mirror's tables runs within it and may take
 * any time, and so may a standby.
 */
function slowReasons({ slowStatements }: Facts): Reason[] {
  return slowStatements.map((statement) =>
    degraded(
      'slow-statement',
      slowText(statement),
      waitsForStandby(statement)
        ? 'it is waited for; bring the standby back, or take it out of synchronous_standby_names'
        : 'it is waited for; give the foreign key an index on its columns, or make the trigger quick',
    ),
  );
}

/** With this many, a call costs Postgres about a third more; fewer do not matter. */
const MANY_VERSIONS = 1_000_000;

/** Returns a reason if a snapshot is held: Postgres then vacuums nothing, and calls cost it more and more. */
function snapshotHeld({ snapshotHolder: holder }: Facts): Reason | false {
  if (holder === null || holder.deadVersions < MANY_VERSIONS) return false;
  const name = `'${holder.name.replaceAll("'", "''")}'`;
  const remedy = {
    session: `have it commit, or run as its role: select pg_terminate_backend(${holder.pid})`,
    prepared: `commit or roll it back: rollback prepared ${name}`,
    slot: `have its consumer go on, or if it has none: select pg_drop_replication_slot(${name})`,
  }[holder.kind];
  const versions =
    `${count(holder.deadVersions)} old versions of rows stay in the mirror's ledger meanwhile, and each call ` +
    'costs Postgres more';
  return degraded('snapshot-held', `${snapshotHolderText(holder)}: ${versions}`, remedy);
}

function watchlistReasons({ watchlistLeftOut }: Facts): Reason[] {
  if (watchlistLeftOut === 0) return [];
  const are = plural(watchlistLeftOut, 'SKU of catalog.watchlist is', 'SKUs of catalog.watchlist are');
  return [
    degraded(
      'watchlist-full',
      `${count(watchlistLeftOut)} ${are} not watched: it has more than WATCHLIST_MAX_SKUS`,
      'take out what need not be watched, or raise WATCHLIST_MAX_SKUS',
    ),
  ];
}

/** Describes what keeps a Postgres from answering that is still working on earlier statements; null: it is not. */
export function busyText(atWork: readonly StatementAtWork[]): string | null {
  const [longest] = atWork.toSorted((a, b) => b.seconds - a.seconds);
  if (longest === undefined) return null;
  const what = atWorkText(longest);
  return (
    `Postgres has been at work on a statement of this daemon (process ${longest.pid} of Postgres) for ` +
    `${formatAge(longest.seconds)}${what === '' ? '' : `: ${what}`}; it is waited for`
  );
}

/** Describes who has locked what Postgres is asked for, so that it does not answer. */
export const lockedText = (holder: LockHolder): string =>
  `the mirror cannot be read: ${holderText(holder)}; ${holderRemedy(holder)}`;

/** What to say of a Postgres that does not answer. */
export const POSTGRES_AWAY = 'Postgres does not answer; check that it runs and that DATABASE_URL reaches it';

const REFUSAL_REMEDIES = {
  rate: 'it resumes by itself at a lower rate; if it lasts, lower PARTNER_RATE_SHARE',
  'other-traffic-or-credential':
    'lower PARTNER_RATE_SHARE, or check the credential with `catalog-mirror doctor`',
  credential: 'check PARTNER_API_KEY and PARTNER_SECRET with `catalog-mirror doctor`',
  account: 'ask the partner to configure it',
} as const;

function refusalReasons({ pace: { refusal, refused } }: Facts): Reason[] {
  if (refusal === null) return [];
  const suspected = refused?.suspected ?? 'rate';
  const level = suspected === 'credential' || suspected === 'account' ? broken : degraded;
  return [level('refused', refusal, REFUSAL_REMEDIES[suspected])];
}

/** Returns a reason if the partner's live source is the cause of live SKUs' errors. */
function liveOutage({ liveOutage: since = null, now }: Facts): Reason | false {
  if (since === null) return false;
  const age = formatAge(Math.max(0, (now.getTime() - since.getTime()) / 1000));
  return degraded(
    'live-outage',
    `the partner's live source has failed for ${age}: live SKUs are in errors, or calls with them fail, so their prices get older`,
    'one is tried once a minute, and it goes on by itself; ask the partner if it lasts',
  );
}

/** A ceiling on live computations hardly allows none for this long. */
const NOTHING_COMPUTED_SECONDS = 1800;

/**
 * Returns a reason if all requested live SKUs are deferred: their prices get older, however few of them are late.
 */
function liveDeferred({ nothingComputedSince: since = null, daemonSeconds, now }: Facts): Reason | false {
  if (since === null) return false;
  // Without a daemon, nothing was asked for.
  const seconds = Math.min((now.getTime() - since.getTime()) / 1000, daemonSeconds);
  return (
    seconds >= NOTHING_COMPUTED_SECONDS &&
    degraded(
      'live-deferred',
      `the partner has computed no live SKU for ${formatAge(seconds)}: it defers those that are asked for, so their ` +
        'prices get older',
      'they are tried on, and all goes on by itself with the first that is computed; ask the partner if it lasts',
    )
  );
}

function catalogReasons(facts: Facts): Reason[] {
  const { sync, incident } = facts;
  return [
    ...held([
      sync.catalogState === 'stale' &&
        (sync.catalogFault !== null || sync.deltaLate !== true) &&
        degraded(
          'catalog-stale',
          'the catalog is stale; SKUs are refreshed by age',
          'ask the partner if it lasts',
        ),
      incident &&
        degraded(
          'incident',
          'incident: the whole catalog is live-priced, so prices get older',
          'put the SKUs that matter into catalog.watchlist',
        ),
      liveOutage(facts),
      liveDeferred(facts),
      sync.manifestRefused !== null &&
        degraded(
          'manifest-refused',
          `the newest manifest was refused: ${sync.manifestRefused}`,
          sync.manifestRefused === 'shrunk'
            ? 'if it is right all the same, confirm it with `catalog-mirror refresh --manifest --accept-shrink`'
            : 'wait for a newer one; if it lasts, run `catalog-mirror doctor`',
        ),
    ]),
    ...failingTasks(facts),
    ...held([failingCalls(facts)]),
  ];
}
