import { resolve } from 'node:path';
import { type Config, envFileOf, loadConfig, processSources } from '../config/config.ts';
import { systemClock } from '../lib/clock.ts';
import { shownJson } from '../lib/json.ts';
import { readPace } from '../pace/ledger.ts';
import { paceLimits } from '../pace/policy.ts';
import { OUTAGE_KINDS } from '../partner/errors.ts';
import type { Sql } from '../store/connection/db.ts';
import { adviceOn, otherHint } from '../store/connection/remedies.ts';
import { sqlState } from '../store/connection/sql-errors.ts';
import { readLostRows } from '../store/ledger/lost-rows.ts';
import { endCallPause } from '../store/ledger/tasks.ts';
import { readScopeState } from '../store/sellers/scope.ts';
import { readMirroredAccount } from '../store/setup/account.ts';
import { otherSettings } from '../store/setup/sql-settings.ts';
import { namingHolder } from '../store/status/holders.ts';
import { createScrubber } from '../telemetry/log/scrub.ts';
import { type Arguments, type Command, EXIT, numberOption, problemsIn, UsageError } from './command.ts';
import { ifAllowed } from './doctor/allowed.ts';
import { fail, type CheckResult, skipped, warn } from './doctor/check.ts';
import {
  checkCredential,
  judgeAccount,
  judgeEnvironment,
  judgeScope,
  judgeSettings,
  judgeShare,
} from './doctor/configuration.ts';
import { checkPartnerReachable } from './doctor/connection.ts';
import { askPartner, type PartnerReport } from './doctor/partner.ts';
import { ledgerPermits, localPermits } from './doctor/permits.ts';
import { isClosed, type PostgresFacts, readPostgresFacts, readOwnMirror } from './doctor/postgres-facts.ts';
import { judgePostgres } from './doctor/postgres.ts';
import { checkRedis } from './doctor/redis.ts';
import { reportJson, type Report, screenOf } from './doctor/report.ts';
import { NoMirror, withoutSecrets } from './errors.ts';
import { RowsLost } from './explained.ts';
import { dataDirOf, withMirror } from './mirror.ts';
import { captureLibraryOutput } from './process.ts';
import { terminalOf } from './terminal.ts';

const REQUESTS = 5;
const MAX_REQUESTS = 50;
const now = () => systemClock.now();

export const doctor: Command = {
  summary: 'check the configuration, Postgres, Redis and the partner API',
  usage: 'doctor [--requests N] [--json]',
  examples: [
    [
      'catalog-mirror doctor',
      'run all checks, and detect the field names that the partner does not document',
    ],
    ['catalog-mirror doctor --requests 0', 'run only the checks that send no request to the partner'],
    ['catalog-mirror doctor | grep ^PARTNER_', 'print only the settings, in the form of an environment file'],
  ],
  exits: ['ok', 'failed', 'finding', 'usage'],
  options: { requests: { type: 'string' }, json: { type: 'boolean' } },
  optionHelp: {
    requests: `maximum number of requests to the partner, 0 to ${MAX_REQUESTS} (default ${REQUESTS}); they count against the rate limit`,
    json: 'print JSON',
  },
  moreHelp: [
    'While requests are paused (`catalog-mirror pause`), it sends none either, and checks all but the partner.',
  ],
  positionals: false,
  problemsOf: problemsIn(requestsOf),
  async run({ print, ...args }) {
    const most = requestsOf(args);
    const config = loadConfig(processSources.env, processSources.readFile);
    // A check already reports what a library prints about Redis, but not Node.js warnings, such as of unverified TLS.
    captureLibraryOutput((from, text) => {
      if (!from.startsWith('console.')) process.stderr.write(`${withoutSecrets(`${from}: ${text}`)}\n`);
    });
    const report = scrubbed(await examine(config, most), config.secrets);
    print(
      args.values['json'] === true
        ? shownJson(reportJson(report))
        : screenOf(report, terminalOf(process.stdout, processSources.env)),
    );
    return report.findings.some(({ level }) => level === 'FAIL') ? EXIT.finding : EXIT.ok;
  },
};

function requestsOf({ values }: Arguments): number {
  const problems: string[] = [];
  const most = numberOption(values, 'requests', REQUESTS, { min: 0, max: MAX_REQUESTS }, problems);
  if (problems.length > 0) throw new UsageError(problems);
  return most;
}

/** Scrubs messages of drivers and field names in the partner's answers, which are not ours and may contain anything. */
function scrubbed(report: Report, secrets: () => readonly string[]): Report {
  const scrubber = createScrubber(secrets);
  const clean = (text: string) => scrubber.text(text);
  return {
    ...report,
    findings: report.findings.map(({ remedy, ...finding }) => ({
      ...finding,
      text: clean(finding.text),
      ...(remedy !== undefined && { remedy: clean(remedy) }),
    })),
    // A name that scrubbing would change cannot be pinned.
    settings: Object.fromEntries(
      Object.entries(report.settings).filter(([, value]) => clean(value) === value),
    ),
    unknown: report.unknown.map((line) => clean(line)),
  };
}

/** Runs all checks, with at most `most` requests to the partner. */
export async function examine(config: Config, most: number): Promise<Report> {
  const redis = await checkRedis(config);
  const baseUrl = await checkPartnerReachable(config.partner, now);
  const reachable = !baseUrl.some(({ level }) => level === 'FAIL');
  const { findings, partner } = await examineMirror(config, reachable ? most : 0);
  const notReached = reachable ? [] : [skipped('partner', 'the base URL cannot be used')];
  return {
    findings: [
      ...judgeEnvironment(config.warnings, processSources.env, envFileOf),
      ...checkCredential(config),
      ...findings,
      ...redis,
      ...baseUrl,
      ...notReached,
      ...partner.findings,
    ],
    requests: partner.requests,
    most,
    settings: partner.settings,
    unknown: partner.unknown,
  };
}

interface Examined {
  readonly findings: readonly CheckResult[];
  readonly partner: PartnerReport;
}

const nothingAsked = (findings: readonly CheckResult[]): PartnerReport => ({
  findings,
  requests: [],
  settings: {},
  unknown: [],
});

/** Examines the database and, with the ledger of requests in it, the partner. */
async function examineMirror(config: Config, most: number): Promise<Examined> {
  try {
    // Only the configured mirror: the state of the demo's database says nothing about the configuration.
    return await withMirror(config, (sql) => examineDatabase(sql, config, most), {
      owners: ['daemon'],
      examines: true,
    });
  } catch (error) {
    if (!(error instanceof NoMirror)) return uncounted([unreachable(error)], config, most);
    // Before the first start there is neither a ledger nor a daemon that sends requests.
    const findings = [noDatabaseYet(config), ...judgeShare(config, null)];
    return { findings, partner: most === 0 ? nothingAsked([]) : await consult(null, config, most) };
  }
}

/** Returns the findings of a database whose ledger cannot be read, so that requests cannot be counted. */
function uncounted(findings: readonly CheckResult[], config: Config, most: number): Examined {
  const asked = most === 0 ? [] : [skipped('partner', 'requests are counted in Postgres')];
  return { findings: [...findings, ...judgeShare(config, null)], partner: nothingAsked(asked) };
}

async function examineDatabase(sql: Sql, config: Config, most: number): Promise<Examined> {
  const facts = await readPostgresFacts(sql, now);
  const findings = judgePostgres(facts, {
    url: config.database.url?.read() ?? null,
    queues: config.queues.redisUrl === null ? 'postgres' : 'redis',
    poolMax: config.database.poolMax,
  });
  try {
    const read = await examineTables(sql, facts, config, most);
    return { ...read, findings: [...findings, ...read.findings] };
  } catch (error) {
    // Somebody has locked or renamed a table, or rows are gone. Earlier findings still stand.
    return uncounted([...findings, unreachable(await namingHolder(sql, error))], config, most);
  }
}

async function examineTables(
  sql: Sql,
  facts: PostgresFacts,
  config: Config,
  most: number,
): Promise<Examined> {
  const ledger = ledgerProblem(facts);
  const isReady = facts.migrated && ledger === null;
  // Rows that policies hide from this role are not lost.
  const isSeen = isReady && facts.damage.hidden.length === 0;
  const lost = isSeen ? await ifAllowed(readLostRows(sql), []) : [];
  if (lost.length > 0) throw new RowsLost(lost);
  const others = isReady ? await readOthers(sql, config) : null;
  const known = isReady ? await ifAllowed(readMirroredAccount(sql), null) : null;
  const account = known === null ? [] : [judgeAccount(config, known, now())];
  // What one partner rejects would pause the daemons of the other.
  const blocked = ledger ?? whyNotOurs(account, isReady);
  const scope = isReady ? await ifAllowed(readScopeState(sql), null) : null;
  const otherwise = isReady ? await ifAllowed(otherSettings(sql, config, paceLimits(config)), []) : [];
  const own = judgeSettings(otherwise, facts.daemons);
  const ofScope = scope === null ? [] : judgeScope(config, scope);
  const findings = [...account, ...ofScope, ...own, ...judgeShare(config, others)];
  if (blocked !== null) return { findings, partner: nothingAsked([skipped('partner', blocked)]) };
  if (most === 0) return { findings, partner: nothingAsked([]) };
  const partner = await ifAllowed(
    consult(facts.migrated ? sql : null, config, most),
    nothingAsked([skipped('partner', NO_RIGHTS)]),
  );
  return { findings, partner };
}

function noDatabaseYet(config: Config): CheckResult {
  return warn(
    'postgres',
    `DATABASE_URL is not set: \`catalog-mirror run\` will create an embedded Postgres in ${resolve(dataDirOf(config, 'daemon'))}`,
    'for production set DATABASE_URL to a Postgres that you back up',
  );
}

const NO_RIGHTS = 'requests are counted in Postgres, and this role lacks the privileges';

/** Returns why requests do not count here, by the line about the account, which is missing if it may not be read. */
function whyNotOurs(account: readonly CheckResult[], isReady: boolean): string | null {
  if (isReady && account.length === 0) return NO_RIGHTS;
  return account.some(({ level }) => level === 'FAIL')
    ? 'requests are counted in Postgres, and this database mirrors another partner'
    : null;
}

/** Returns why requests cannot be counted in this database, or null if they can. Pure. */
export function ledgerProblem(facts: PostgresFacts): string | null {
  if (facts.unknown > 0) return 'requests are counted in Postgres, and its schema belongs to a later version';
  if (facts.occupied.some(({ kind }) => kind !== 'role-of-another'))
    return "requests are counted in Postgres, and schemas with the mirror's names are not the mirror's";
  if (!facts.migrated) return null;
  // Lacking a table's privileges need not affect the ledger.
  const isShut = isClosed(facts.lacking) || facts.lacking.some(({ kind }) => kind !== 'table');
  if (!facts.owns || isShut) return NO_RIGHTS;
  if (facts.pending > 0) return 'requests are counted in Postgres: apply the pending migrations first';
  const writes = !facts.inRecovery && !facts.readOnly && facts.writeProblem === null;
  return writes ? null : 'requests are counted in Postgres, and it accepts no writes';
}

async function readOthers(sql: Sql, config: Config): Promise<number | null> {
  return await ifAllowed(
    readPace(sql, config.rate.windowMs).then(({ others }) => others),
    null,
  );
}

/** Asks the partner. `sql` is null if there are no tables yet, and so no ledger to count requests in. */
async function consult(sql: Sql | null, config: Config, most: number): Promise<PartnerReport> {
  const limits = paceLimits(config);
  const permits = sql === null ? localPermits(systemClock, limits) : ledgerPermits(sql, systemClock, limits);
  const { price } = config.partner.fields;
  const mirror = (await ifAllowed(readOwnMirror(sql, price), null)) ?? (await readOwnMirror(null, price));
  const report = await askPartner({ config, permits, mirror, most, now });
  const isAnswered = report.requests.some(({ outcome }) => outcome === 'ok');
  if (sql !== null && isAnswered) await ifAllowed(endCallPause(sql, OUTAGE_KINDS), null);
  return report;
}

function unreachable(error: unknown): CheckResult {
  const cause =
    error instanceof Error && error.cause instanceof Error && error.cause.message !== ''
      ? `: ${error.cause.message}`
      : '';
  const { what, hint } = adviceOn(error);
  const message = error instanceof Error ? error.message : 'no connection';
  const text = `${what === null ? '' : `${what}: `}${message} (${sqlState(error) ?? 'no code'})${cause}`;
  return fail('postgres', text, hint ?? otherHint(error));
}
