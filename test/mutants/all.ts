import { ALERTING } from './alerting.ts';
import { ANSWER_SQL } from './answers.ts';
import { AUDITS } from './audit.ts';
import { BASELINES } from './baselines.ts';
import { BELIEVING } from './believing.ts';
import { CALIBRATION_FAULTS } from './calibration.ts';
import { CALL_FAULTS } from './call-faults.ts';
import { CATALOG_CHECKS } from './catalog-checks.ts';
import { CHEAP_CALLS } from './cheap-calls.ts';
import { CLOCKS } from './clocks.ts';
import { COLUMNS } from './columns.ts';
import { COMMANDS } from './commands.ts';
import { CONNECTIONS } from './connections.ts';
import { CONSUMERS } from './consumers.ts';
import { COSTS_OF_MANY } from './costs.ts';
import { DATABASES } from './databases.ts';
import { DECISIONS } from './decisions.ts';
import { ENTRIES } from './entries.ts';
import { ENVIRONMENT } from './environment.ts';
import { FAULTS_OF_SOME } from './faults-of-some.ts';
import { FOLLOWERS } from './followers.ts';
import { HIDDEN_FAULTS } from './hidden-faults.ts';
import { HINTS } from './hints.ts';
import { HISTORY } from './history.ts';
import { HOLES } from './holes.ts';
import { HTTP } from './http.ts';
import { IMPAIRED } from './impaired.ts';
import { INCIDENTS } from './incidents.ts';
import { INPUTS } from './inputs.ts';
import { JUDGEMENTS } from './judgements.ts';
import { LAGGING_MANIFESTS } from './lagging.ts';
import { LATE_PRICES } from './late-prices.ts';
import { LEARNED_NAMES } from './learned-names.ts';
import { LIVE_DOUBTS } from './live-doubts.ts';
import { LIVE } from './live.ts';
import { LOCKS } from './locks.ts';
import { LOST_ROWS } from './lost-rows.ts';
import { MANIFEST_ANSWERS } from './manifest-answers.ts';
import { MASS_MOVES } from './mass-moves.ts';
import { MEANWHILE } from './meanwhile.ts';
import { MOMENTS } from './moments.ts';
import type { Mutant } from './mutant.ts';
import { NEIGHBOURS } from './neighbours.ts';
import { OBJECTS } from './objects.ts';
import { OBSTACLES } from './obstacles.ts';
import { OCCUPIED } from './occupied.ts';
import { ODD_TEXTS } from './odd-texts.ts';
import { OPERATIONS } from './operations.ts';
import { OWN_MIRROR } from './own-mirror.ts';
import { PACKING } from './packing.ts';
import { PARTNER_CASES } from './partner-cases.ts';
import { PAUSES } from './pauses.ts';
import { POOLERS } from './poolers.ts';
import { PROMISES } from './promises.ts';
import { PROXIES } from './proxies.ts';
import { READINGS } from './readings.ts';
import { RECONCILIATIONS } from './reconciliation.ts';
import { REDIS } from './redis.ts';
import { REFRESHES } from './refreshes.ts';
import { REFUSED_BATCHES } from './refused-batches.ts';
import { REFUSED_CALLS } from './refused.ts';
import { RELEASES } from './releases.ts';
import { SAFETY } from './safety.ts';
import { SCARCE } from './scarce.ts';
import { SCHEDULING } from './scheduling.ts';
import { SCOPE } from './scope.ts';
import { SELLERS } from './sellers.ts';
import { SETTLED, SPARE_SLOTS } from './settled.ts';
import { SQL } from './sql.ts';
import { STANDSTILLS } from './standstills.ts';

/** Every fault that can be planted, by its list. */
export const LISTS: Readonly<Record<string, readonly Mutant[]>> = {
  'partner-cases': PARTNER_CASES,
  'catalog-checks': CATALOG_CHECKS,
  moments: MOMENTS,
  standstills: STANDSTILLS,
  audit: AUDITS,
  commands: COMMANDS,
  connections: CONNECTIONS,
  locks: LOCKS,
  meanwhile: MEANWHILE,
  safety: SAFETY,
  scarce: SCARCE,
  hints: HINTS,
  history: HISTORY,
  holes: HOLES,
  http: HTTP,
  decisions: DECISIONS,
  impaired: IMPAIRED,
  incidents: INCIDENTS,
  live: LIVE,
  'live-doubts': LIVE_DOUBTS,
  releases: RELEASES,
  entries: ENTRIES,
  'odd-texts': ODD_TEXTS,
  lagging: LAGGING_MANIFESTS,
  'late-prices': LATE_PRICES,
  obstacles: OBSTACLES,
  operations: OPERATIONS,
  alerting: ALERTING,
  'learned-names': LEARNED_NAMES,
  readings: READINGS,
  reconciliation: RECONCILIATIONS,
  'manifest-answers': MANIFEST_ANSWERS,
  'mass-moves': MASS_MOVES,
  'faults-of-some': FAULTS_OF_SOME,
  'hidden-faults': HIDDEN_FAULTS,
  judgements: JUDGEMENTS,
  scheduling: SCHEDULING,
  inputs: INPUTS,
  'cheap-calls': CHEAP_CALLS,
  answers: ANSWER_SQL,
  columns: COLUMNS,
  consumers: CONSUMERS,
  costs: COSTS_OF_MANY,
  settled: SETTLED,
  'spare-slots': SPARE_SLOTS,
  calibration: CALIBRATION_FAULTS,
  sql: SQL,
  baselines: BASELINES,
  objects: OBJECTS,
  neighbours: NEIGHBOURS,
  clocks: CLOCKS,
  databases: DATABASES,
  sellers: SELLERS,
  occupied: OCCUPIED,
  poolers: POOLERS,
  pauses: PAUSES,
  proxies: PROXIES,
  redis: REDIS,
  refreshes: REFRESHES,
  refused: REFUSED_CALLS,
  packing: PACKING,
  promises: PROMISES,
  environment: ENVIRONMENT,
  scope: SCOPE,
  followers: FOLLOWERS,
  'refused-batches': REFUSED_BATCHES,
  believing: BELIEVING,
  'call-faults': CALL_FAULTS,
  'lost-rows': LOST_ROWS,
  'own-mirror': OWN_MIRROR,
};
