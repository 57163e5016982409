import { requestTask } from '../../src/store/ledger/tasks.ts';
import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import { timesAfter } from '../support/movable-clock.ts';
import { expectHistoryIsAChain } from '../support/oracle.ts';
import type { SettingsEnv } from '../support/settings.ts';
import { Clocks, LONGEST_PLAN_MS, UNWATCHED_MS } from './clocks.ts';
import { drawSettings, putInForce } from './differing.ts';
import { everythingTrue, makeGood, promisesAreKept, type Rested, untilAtRest } from './endings.ts';
import { arriving, type Draw, pick, pickWeighed, type Weighed } from './faults.ts';
import { CALM, crashInManifest, crashNowhere, fortuneOf, mayCrashInManifest } from './fortune.ts';
import { Hands } from './hands.ts';
import { type Job, runJob } from './jobs.ts';
import { Judge } from './judge.ts';
import { moveOnce, Prices, setNext } from './market.ts';
import { leaveAlone } from './neighbours.ts';
import type { Pending } from './partner.ts';
import type { Left, Working } from './rest.ts';
import type { Rig } from './rig.ts';
import { disturb, Spells, watchSome } from './spells.ts';
import { Crash, type Daemon, isInjected, type Worker } from './worker.ts';

const MINUTE = 60_000;

/** What a history is made of. All of it follows from the seed. */
export interface Plan {
  readonly draw: Draw;
  /** The number of daemons. Each asks for prices and polls the catalog at the same time. */
  readonly daemons: number;
}

/** What the workers of a daemon do. The last one exists only if clocks go wrong. */
const WORK = ['catalog', 'prices', 'clocks'] as const;

/** One history: a market that moves, daemons that follow it with faults, and what must hold at all times. */
export class History {
  readonly #rig: Rig;
  readonly #draw: Draw;
  readonly #judge: Judge;
  readonly #spells: Spells;
  /** Null if all clocks are right. */
  readonly #clocks: Clocks | null;
  readonly #daemons: Daemon[] = [];
  /** The workers of each daemon, in the order of WORK. */
  readonly #workers: Working[] = [];
  readonly #settings: SettingsEnv;
  /** Whether daemons have settings of their own. */
  readonly #differ: boolean;
  readonly #paced: boolean;
  readonly #hands: Hands;
  readonly #count: number;
  /** What was done, for the reader of a failure. */
  readonly log: string[] = [];
  readonly #unexpected: unknown[] = [];
  readonly #prices: Prices;

  constructor(rig: Rig, plan: Plan) {
    this.#rig = rig;
    this.#draw = plan.draw;
    this.#prices = new Prices(plan.draw, (what) => rig.note(what));
    this.#judge = new Judge(rig);
    this.#spells = new Spells(rig.partner, plan.draw);
    this.#settings = { BULK_MAX_SKUS: pick(['3', '8', '100'], plan.draw) };
    this.#differ = plan.draw(3) === 1;
    this.#count = plan.daemons;
    this.#clocks = plan.draw(4) === 0 ? new Clocks(rig, plan.draw) : null;
    // Sends reveal a clock that nobody has seen ahead.
    this.#paced = plan.draw(5) === 0 || this.#clocks !== null;
    const { log } = this;
    const look = () => this.#look();
    const endAll = async () => {
      for (const daemon of this.#daemons) await this.#end(daemon);
    };
    this.#hands = new Hands(
      { rig, judge: this.#judge, draw: plan.draw, log, look, endAll, paced: this.#paced },
      this.#clocks === null,
    );
  }

  /** Plays the whole history: the faults, the rest after them, and the judgement. */
  async live(length: number): Promise<void> {
    for (let nth = 0; nth < this.#count; nth += 1) await this.#bear(nth);
    if (this.#draw(3) === 0) crashInManifest(this.#draw, this.#rig);
    if (this.#draw(3) > 0) await this.#refreshSome();
    await this.#look();
    if (this.#draw(2) === 0) this.#cast();
    this.#move();
    this.#snapshot();
    for (let step = 0; step < length; step += 1) {
      const [what, act] = this.#choose();
      this.log.push(what);
      await act();
    }
    await this.rest();
    if (this.#draw(6) === 0) await promisesAreKept(this.#rested());
    if (this.#draw(4) === 0) await everythingTrue(this.#rested());
    await expectHistoryIsAChain(this.#rig.sql);
    await this.#hands.followersCatchUp();
  }

  /** Brings the mirror to rest with one daemon without faults, until nothing is due. */
  async rest(): Promise<void> {
    const { world } = this.#rig.partner;
    for (const { worker } of this.#workers) await worker.end();
    crashNowhere(this.#rig);
    await this.#judge.lookAtActionable();
    this.log.push('rest');
    await this.#clocks?.right(this.#daemons);
    this.#clockSet();
    this.#spells.end();
    await leaveAlone(this.#rig);
    world.startBuilder();
    for (const { sku } of world.truth().values()) world.setFailing(sku, false);
    this.#snapshot();
    await this.#bear(0, CALM);
    await this.#lookAtClocks();
    if (this.#clocks !== null) await this.#nothingIsPutOff();
    await untilAtRest(this.#rested());
    this.#judge.expectRefreshed();
    await makeGood(this.#rested());
  }

  async #bear(nth: number, fortune = fortuneOf(this.#draw, this.#rig)): Promise<void> {
    // The last daemon has the defaults: whatever others have planned by their settings comes to rest under these.
    const differs = this.#differ && fortune !== CALM;
    const settings = { ...this.#settings, ...(differs && drawSettings(this.#draw)) };
    if (this.#differ) await putInForce(this.#rig.sql, settings);
    const daemon: Daemon = { alive: true, statements: 0, fortune, host: { ahead: 0 } };
    this.#daemons[nth] = daemon;
    if (this.#differ) this.log.push(`daemon ${nth} has ${JSON.stringify(settings)}`);
    const works = this.#clocks === null ? 2 : WORK.length;
    for (let n = 0; n < works; n += 1) {
      const place = works * nth + n;
      const [worker, ctx] = this.#rig.worker(place, daemon, settings, this.#paced);
      this.#workers[place] = { worker, ctx };
      if (WORK[n] === 'clocks') this.#clocks?.watch(worker, ctx);
    }
  }

  /** Requests a refresh of some SKUs, so that there is something to do from the start. */
  async #refreshSome(): Promise<void> {
    const skus = [...this.#rig.partner.world.truth().values()].filter(({ listed }) => listed);
    const some = Array.from({ length: 1 + this.#draw(6) }, () => pick(skus, this.#draw).sku);
    await refreshSkus(this.#rig.sql, some);
  }

  #choose(): readonly [string, () => unknown] {
    const overtaking = this.#rig.partner.pending.some(({ slow }) => slow);
    const ways: Weighed<[string, () => unknown]>[] = [
      [35, 'move', () => this.#move()],
      // Whatever a slow answer has missed should be reported before it arrives.
      [overtaking ? 60 : 25, 'snapshot', () => this.#snapshot()],
      [15, 'time', () => this.#pass(pick([1000, 20_000, 2 * MINUTE, 6 * MINUTE, 40 * MINUTE], this.#draw))],
      [5, 'world', () => disturb(this.#rig.partner.world, this.#draw)],
      [8, 'spell', () => this.#cast()],
      [4, 'watch', () => watchSome(this.#rig, this.#draw)],
      ...this.#hands.ways(),
      [this.#clocks === null ? 0 : 20, 'clock', () => this.#setClock()],
    ];
    for (const watched of this.#clocks?.ready() ?? [])
      ways.push([40, `${watched.worker.name} looks at the clocks`, () => this.#watch(watched)]);
    for (const [nth, daemon] of this.#daemons.entries()) {
      if (!daemon.alive) ways.push([60, `daemon ${nth} starts`, () => this.#bear(nth)]);
      else ways.push([2, `daemon ${nth} dies`, () => this.#kill(daemon)]);
    }
    for (const { worker, ctx } of this.#workers) {
      if (worker.paused)
        ways.push([120, `${worker.name} goes on`, () => this.#go(worker, () => worker.go())]);
      else if (worker.daemon.alive && !worker.busy && this.#clocks?.isBlind(worker.daemon) !== true)
        ways.push(...this.#jobs({ worker, ctx }));
    }
    for (const pending of this.#rig.partner.pending) {
      const whose = `${pending.route} of ${pending.worker.name}`;
      if (pending.answer === null) {
        ways.push([120, `${whose} is answered`, () => this.#answer(pending)]);
      } else ways.push([pending.slow ? 4 : 120, `${whose} arrives`, () => this.#deliver(pending)]);
    }
    return pickWeighed(ways, this.#draw);
  }

  #jobs(working: Working): Weighed<[string, () => unknown]>[] {
    const { worker } = working;
    const place = this.#workers.findIndex((other) => other.worker === worker);
    const jobs: Record<(typeof WORK)[number], [number, Job][]> = {
      prices: [[60, 'reprice']],
      catalog: [
        // A cache is noticed only if the same request is repeated within a minute.
        [this.#rig.partner.deltaCache === null ? 60 : 300, 'delta'],
        [mayCrashInManifest(this.#rig) ? 40 : 6, 'manifest'],
        [this.#spells.incident ? 20 : 1, 'catalog-check'],
        [1, 'live-plan'],
        [1, 'metadata'],
        [this.#hands.aged ? 120 : 1, 'maintenance'],
      ],
      clocks: [],
    };
    const work = WORK[place % (this.#clocks === null ? 2 : WORK.length)] ?? 'catalog';
    return jobs[work].map(([weight, job]) => [
      weight,
      `${worker.name} ${job}`,
      () => this.#begin(working, job),
    ]);
  }

  /** Lets time pass without leaving the clocks unchecked by all daemons for long. */
  async #pass(ms: number): Promise<void> {
    if (ms > UNWATCHED_MS) await this.#lookAtClocks();
    await this.#rig.time.pass(ms);
    if (ms > UNWATCHED_MS) await this.#lookAtClocks();
  }

  async #setClock(): Promise<void> {
    this.log.push((await this.#clocks?.turn(this.#daemons)) ?? '');
    this.#clockSet();
    await this.#look();
  }

  #clockSet(): void {
    if (this.#clocks !== null) this.#judge.clockSet(this.#clocks.slackMs);
  }

  /** Lets a daemon check the clocks until it stops. */
  async #watch(watched: Parameters<Clocks['look']>[0]): Promise<void> {
    const { worker } = watched;
    await this.#go(worker, () =>
      worker.start(() => this.#survived(worker, async () => await this.#clocks?.look(watched))),
    );
    this.#clockSet();
  }

  /** Lets all living daemons finish checking the clocks. */
  async #lookAtClocks(): Promise<void> {
    for (const { worker } of this.#workers)
      while (
        worker.paused &&
        WORK[this.#workers.findIndex((other) => other.worker === worker) % 3] === 'clocks'
      )
        await this.#go(worker, () => worker.go());
    for (const watched of this.#clocks?.ready() ?? []) {
      await this.#watch(watched);
      while (watched.worker.paused) await this.#go(watched.worker, () => watched.worker.go());
    }
  }

  /** Checks that a wrong clock has put nothing off further than any schedule does. */
  async #nothingIsPutOff(): Promise<void> {
    const late = await timesAfter(this.#rig.sql, new Date(this.#rig.time.at + LONGEST_PLAN_MS));
    if (Object.keys(late).length > 0) throw new Error(`put off by a wrong clock: ${JSON.stringify(late)}`);
  }

  async #begin(working: Working, job: Job): Promise<void> {
    if (job === 'manifest' || job === 'catalog-check') await requestTask(this.#rig.sql, job);
    await this.#go(working.worker, () => working.worker.start(() => this.#work(working, job)));
  }

  /** Lets a worker continue until it stops. If its process has ended meanwhile, its other workers end with it. */
  async #go(worker: Worker, how: () => Promise<void>): Promise<void> {
    await how();
    if (!worker.daemon.alive) await this.#end(worker.daemon);
    await this.#look();
  }

  async #end(daemon: Daemon): Promise<void> {
    for (const { worker } of this.#workers) if (worker.daemon === daemon) await worker.end();
  }

  async #work({ worker, ctx }: Working, job: Job): Promise<void> {
    await this.#survived(worker, () => runJob(ctx, job));
  }

  /** Runs the work until it or the process ends. */
  async #survived(worker: Worker, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (error instanceof Crash) worker.daemon.alive = false;
      else if (!isInjected(error)) this.#unexpected.push(error);
    }
  }

  #move(): void {
    const times = 1 + this.#draw(3);
    const underWay = this.#rig.partner.pending.flatMap(({ skus, answer }) => (answer === null ? [] : skus));
    for (let n = 0; n < times; n += 1) {
      moveOnce(this.#rig.partner.world, this.#draw, this.#prices, underWay);
    }
    for (const sku of this.#judge.truth.swungBack())
      setNext(this.#rig.partner.world, this.#prices, sku, 'one');
    this.#judge.truth.marketMoved(this.#rig.time.at);
  }

  #snapshot(): void {
    this.#rig.partner.world.buildSnapshot();
    this.#judge.truth.snapshotBuilt(this.#rig.time.at);
  }

  /** Changes the partner for a while. */
  #cast(): void {
    const what = this.#spells.turn();
    this.log.push(what);
    this.#rig.note(what);
    this.#snapshot();
  }

  async #kill(daemon: Daemon): Promise<void> {
    this.#rig.note('crash');
    await this.#end(daemon);
    await this.#look();
  }

  #answer(pending: Pending): void {
    pending.answer = arriving(pending, this.#draw);
    pending.answeredAt = this.#rig.partner.saidAt;
    const isFromCache = pending.route === 'delta' && this.#rig.partner.deltaCache !== null;
    pending.slow = this.#draw(2) === 0 && !isFromCache;
  }

  async #deliver(pending: Pending): Promise<void> {
    const { worker, answer, deliver } = pending;
    if (answer === null) return;
    this.#clocks?.answered(worker.daemon);
    await deliver(answer);
    if (!worker.daemon.alive) await this.#end(worker.daemon);
    this.#throwUnexpected();
    await this.#judge.refreshAfter(pending);
  }

  async #look(): Promise<void> {
    this.#throwUnexpected();
    await this.#judge.look();
  }

  /** Throws the first error that nobody injected. */
  #throwUnexpected(): void {
    if (this.#unexpected.length > 0) throw this.#unexpected[0];
  }

  #rested(): Rested {
    return {
      rig: this.#rig,
      judge: this.#judge,
      draw: this.#draw,
      left: () => this.#left(),
      move: () => this.#move(),
      snapshot: () => this.#snapshot(),
      look: () => this.#look(),
    };
  }

  #left(): Left {
    const [catalog, prices] = this.#workers;
    if (catalog === undefined || prices === undefined) throw new Error('nobody is left');
    return { catalog, prices };
  }
}
