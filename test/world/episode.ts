import { writeFileSync } from 'node:fs';
import type { Sql } from '../../src/store/connection/db.ts';
import { seeded } from '../hostile/random.ts';
import { pause } from '../support/eventually.ts';
import type { Program } from '../support/process.ts';
import { Answers } from './answers.ts';
import { type Plan, drawPlan } from './draw.ts';
import { Market } from './market.ts';
import { Partner, type Request } from './partner.ts';
import { MAY_SAY } from './reasons.ts';
import { Follower, type Record_, differences, judge, unanswered } from './witness.ts';

export interface Stage {
  readonly sql: Sql;
  readonly databaseUrl: string;
  readonly redisUrl: string | null;
  /** The file from which the daemon reads the partner's secret. */
  readonly secretFile: string;
  readonly start: (env: Readonly<Record<string, string>>) => Program;
}

export interface Told {
  readonly plan: Plan;
  /** Violations of what must hold. */
  readonly faults: string[];
  /** The plan's faults and events, and each change of state or reasons, with their times. */
  readonly course: string[];
  readonly record: Record_;
  readonly figures: Record<string, number | null>;
  readonly logged: Record<string, number>;
  requests: readonly Request[];
  /** Log lines of level `warn` and above. */
  readonly warnings: string[];
}

const EVERY_MS = 500;
const LOOK_MS = 2500;
/** Longest wait for the initial load, and for the mirror to equal the market once that rests. */
const QUIET_MS = 240_000;
/** Longest wait after that for the state `healthy`, which is recorded but not required. */
const CALM_MS = 15_000;

export interface Lengths {
  readonly seconds: readonly [number, number];
  readonly skus: number;
}

/** Plays the episode of a seed: runs a daemon against a partner whose market moves, and then rests. */
export async function play(seed: number, stage: Stage, lengths: Lengths): Promise<Told> {
  const draw = seeded(seed);
  const chance = () => draw(2 ** 32) / 2 ** 32;
  const plan = drawPlan(seed, chance, lengths.seconds, lengths.skus);
  const began = Date.now();
  const market = new Market(plan.market, chance, began);
  const forms = plan.forms[0];
  if (forms === undefined) throw new Error('no forms');
  market.idForm = forms.id;
  market.build(began);
  const partner = new Partner(new Answers(market, plan.partner, forms, chance), 'first-secret');
  await partner.listen();
  const told: Told = {
    plan,
    faults: [],
    course: [],
    record: { shown: 0, right: 0, claimed: 0, wrong: new Map() },
    figures: {},
    logged: {},
    requests: partner.requests,
    warnings: [],
  };
  const episode = new Episode(plan, stage, partner, told, began);
  try {
    await episode.run();
  } finally {
    await partner.close();
  }
  return told;
}

class Episode {
  readonly #plan: Plan;
  readonly #stage: Stage;
  readonly #partner: Partner;
  readonly #told: Told;
  #began: number;
  readonly #follower = new Follower();
  readonly #faults = new Set<string>();
  readonly #programs: Program[] = [];
  #said = '';
  #builtAt: number;
  #daemon: Program | null = null;

  constructor(plan: Plan, stage: Stage, partner: Partner, told: Told, began: number) {
    this.#plan = plan;
    this.#stage = stage;
    this.#partner = partner;
    this.#told = told;
    this.#began = began;
    this.#builtAt = began;
  }

  #start(): void {
    const plan = this.#plan;
    const stage = this.#stage;
    const redis: Readonly<Record<string, string>> =
      plan.queues === 'redis' && stage.redisUrl !== null
        ? { REDIS_URL: stage.redisUrl, QUEUE_PREFIX: `world-${plan.seed}` }
        : {};
    this.#daemon = stage.start({
      ...plan.env,
      ...redis,
      DATABASE_URL: stage.databaseUrl,
      PARTNER_BASE_URL: this.#partner.url,
      PARTNER_API_KEY: 'world-key',
      PARTNER_SECRET_FILE: stage.secretFile,
      DATABASE_POOL_MAX: '6',
      HTTP_PORT: '0',
      LOG_FORMAT: 'json',
    });
    this.#programs.push(this.#daemon);
  }

  #note(text: string): void {
    this.#told.course.push(`${((Date.now() - this.#began) / 1000).toFixed(1)}s ${text}`);
  }

  #fault(text: string): void {
    if (this.#faults.has(text) || this.#faults.size > 30) return;
    this.#faults.add(text);
    this.#told.faults.push(`${((Date.now() - this.#began) / 1000).toFixed(1)}s ${text}`);
  }

  async run(): Promise<void> {
    writeFileSync(this.#stage.secretFile, 'first-secret\n');
    this.#start();
    await this.#daemon?.until('app.started', QUIET_MS);
    for (const over = Date.now() + QUIET_MS; this.#plan.isFilled && Date.now() < over; await pause(EVERY_MS))
      if ((await differences(this.#stage.sql, this.#partner.answers)).length === 0) break;
    this.#began = Date.now();
    this.#partner.answers.market.resume(this.#began);
    const { faults } = this.#plan;
    this.#partner.answers.faults = faults.map((f) => ({
      ...f,
      from: this.#began + f.from,
      until: this.#began + f.until,
    }));
    for (const { kind, route, from, until } of faults)
      this.#note(`: ${kind} of ${route} ${(from / 1000).toFixed(1)} to ${(until / 1000).toFixed(1)}s`);
    const moving = this.#events();
    try {
      for (let look = 0; Date.now() < this.#began + this.#plan.activeMs; look += 1) {
        await this.#beat(true);
        if (look % (LOOK_MS / EVERY_MS) === 0) await this.#look();
        await pause(EVERY_MS);
      }
      await moving;
      await this.#quiet();
    } finally {
      for (const program of this.#programs) program.signal('SIGTERM');
      const ends = await Promise.all(this.#programs.map((program) => program.exited));
      const last = ends.at(-1);
      if (last?.code !== 0) this.#fault(`the daemon ended with ${JSON.stringify(last)}`);
      this.#count();
    }
  }

  /** Moves the market on if `moves`, and builds a snapshot if one is due. */
  async #beat(moves: boolean): Promise<void> {
    const now = Date.now();
    if (moves) this.#partner.answers.market.tick(now);
    if (now - this.#builtAt < this.#plan.partner.buildEveryMs) return;
    this.#builtAt = now;
    this.#partner.answers.market.build(now);
  }

  async #events(): Promise<void> {
    await Promise.all(
      this.#plan.events.map(async ({ at, what, lasts }) => {
        await pause(at);
        this.#note(`- ${what}`);
        const { answers } = this.#partner;
        const { market } = answers;
        if (what === 'deploy' || what === 'forgetful-deploy') {
          const next = this.#plan.forms[1];
          if (next === undefined) return;
          answers.forms = next;
          market.idForm = next.id;
          if (what === 'forgetful-deploy') {
            market.build(Date.now());
            answers.forgotten = market.builds.length - 1;
          }
        } else if (what === 'rotation') {
          this.#partner.secrets = ['second-secret'];
          await pause(lasts);
          writeFileSync(this.#stage.secretFile, 'second-secret\n');
        } else if (what === 'incident') {
          const before = new Map([...market.items.values()].map((item) => [item, item.source]));
          for (const item of before.keys()) item.source = 'live';
          await pause(lasts);
          for (const [item, source] of before) item.source = source;
        } else await this.#again(what === 'kill' ? 'SIGKILL' : 'SIGTERM', lasts);
      }),
    );
  }

  async #again(signal: NodeJS.Signals, ms: number): Promise<void> {
    const old = this.#daemon;
    this.#daemon = null;
    await old?.end(signal);
    await pause(ms);
    this.#start();
  }

  /** Checks what must hold at any time. */
  async #look(): Promise<void> {
    const { sql } = this.#stage;
    try {
      for (const text of await unanswered(sql, this.#partner.answers)) this.#fault(text);
      await judge(sql, this.#partner.answers.market, this.#told.record);
      await this.#follower.compare(sql);
      for (const text of this.#follower.faults) this.#fault(text);
    } catch (error) {
      const code = (error as { code?: string }).code;
      if (code !== '42P01' && code !== '3F000' && code !== '42883' && code !== '40001') throw error;
    }
    await this.#status();
  }

  /** Reads the state and its reasons, checks /readyz, and notes changes. Returns null without an answer. */
  async #status(): Promise<{ state: string; codes: string[] } | null> {
    const daemon = this.#daemon;
    if (daemon === null || daemon.logged('app.started').length === 0) return null;
    try {
      const { body } = await daemon.get('/status.json');
      const { state, reasons } = JSON.parse(body) as {
        state: string;
        reasons: { code: string; text: string }[];
      };
      const codes = reasons.map(({ code }) => code);
      const ready = await daemon.get('/readyz');
      const { ok, state: there } = JSON.parse(ready.body) as { ok: boolean; state: string };
      if (ok !== (ready.status === 200) || (!ok && there === 'healthy'))
        this.#fault(`readyz is ${ready.status} with ${ready.body}`);
      const said = `${state} ${codes.join(' ')}`;
      if (said !== this.#said) {
        this.#note(
          `${state}${reasons.map(({ code, text }) => ` [${code}: ${text.slice(0, 160)}]`).join('')}`,
        );
        for (const code of codes) this.#weigh(code);
      }
      this.#said = said;
      return { state, codes };
    } catch {
      return null;
    }
  }

  /** Records a fault if nothing in the plan explains the reason. */
  #weigh(code: string): void {
    const may = MAY_SAY[code];
    if (may === undefined || !may(this.#plan)) this.#fault(`says ${code}, for which there is no cause`);
  }

  async #quiet(): Promise<void> {
    const from = Date.now();
    this.#note('- quiet');
    this.#partner.answers.faults = [];
    this.#partner.answers.honest = true;
    this.#partner.answers.market.build(from);
    this.#builtAt = from;
    let left: string[] = ['never compared'];
    let equalAt: number | null = null;
    let state: string | null = null;
    for (let look = 0; Date.now() < from + QUIET_MS; look += 1) {
      await this.#beat(false);
      if (look % 3 === 0) await this.#look();
      left = await differences(this.#stage.sql, this.#partner.answers);
      if (left.length === 0) equalAt ??= Date.now() - from;
      if (equalAt !== null && left.length > 0)
        this.#fault(`was equal and is not any longer: ${left.slice(0, 3).join(' | ')}`);
      state = (await this.#status())?.state ?? null;
      if (left.length === 0 && (state === 'healthy' || Date.now() > from + (equalAt ?? 0) + CALM_MS)) break;
      await pause(EVERY_MS * 2);
    }
    if (left.length > 0)
      this.#fault(`${left.length} SKUs are not as they should be: ${left.slice(0, 6).join(' | ')}`);
    this.#told.figures['equalAfterMs'] = equalAt;
    this.#told.figures['healthyAfterMs'] = state === 'healthy' ? Date.now() - from : null;
    this.#note(`- over: ${String(state)}`);
  }

  /** Checks what the partner counted, and summarizes the log. */
  #count(): void {
    const { requests, overRate } = this.#partner;
    const { plan, mostLive, market } = this.#partner.answers;
    const times = requests.filter(({ route }) => route !== 'file').map(({ at }) => at);
    let most = 0;
    for (let from = 0, to = 0; to < times.length; to += 1) {
      while ((times[to] ?? 0) - (times[from] ?? 0) >= plan.rateWindowMs) from += 1;
      most = Math.max(most, to - from + 1);
    }
    if (overRate > 0) this.#fault(`${overRate} requests were too fast`);
    if (most > plan.rateLimit * 0.6)
      this.#fault(`${most} requests in a window, of a share of ${plan.rateLimit * 0.6}`);
    if (mostLive > 5) this.#fault(`${mostLive} live computations in a call`);
    if (requests.some(({ route }) => route === 'other'))
      this.#fault('asked for a route that it does not need');
    const bulk = requests.filter(({ route }) => route === 'bulk');
    Object.assign(this.#told.figures, {
      requests: times.length,
      mostInWindow: most,
      bulk: bulk.length,
      liveMost: Math.max(0, ...bulk.map(({ live }) => live)),
      callsOverFive: bulk.filter(({ live }) => live > 5).length,
      compared: this.#follower.compared,
      skus: market.items.size,
    });
    for (const line of this.#programs.flatMap(({ stdout }) => stdout)) {
      if (!line.startsWith('{')) continue;
      const entry = JSON.parse(line) as { level: number | string; event: string; msg?: string };
      this.#told.logged[entry.event] = (this.#told.logged[entry.event] ?? 0) + 1;
      if (/^(?:warn|error|fatal)$/.test(String(entry.level)) || Number(entry.level) >= 40)
        this.#told.warnings.push(line.slice(0, 600));
    }
  }
}
