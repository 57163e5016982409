import { test } from 'vitest';
import { Day } from './day.ts';
import { sayAll } from './progress.ts';
import { readActionable } from './mirror.ts';
import { useRig } from './rig.ts';
import { connect } from '../../src/store/connection/db.ts';
import { QUIET } from './quiet.ts';
import { appendFileSync } from 'node:fs';

const rig = useRig(() => Promise.resolve());
const only = process.env['ONLY'];
test.each(Object.keys(QUIET).filter((n) => only === undefined || n.includes(only)))('%s', async (name) => {
  await rig.reset({ seed: 7, skus: 120, liveShare: 0.2 });
  await rig.time.set(Date.now() + 60_000);
  const day = new Day(rig, 'info', { DELTA_INTERVAL: '5m', SWEEP_MIN_AGE: process.env['SWEEP'] ?? '12h' });
  const presence = connect(rig.url, { max: 1, name: 'catalog-mirror instance' });
  await presence`
    insert into catalog_internal.instances
    select 1, pid, backend_start from pg_stat_activity where pid = pg_backend_pid()`;
  const out = (t: string) => appendFileSync('/tmp/explore-w2.txt', `${t}\n`);
  out(`== ${name}`);
  await day.pass(0.2 + 1);
  const wrongSince = new Map<string, number>();
  const from = day.lines.length;
  const end = QUIET[name]!(day, rig, () => 0);
  for (let m = 0; m < 200; m += 1) {
    await day.pass(1 / 60);
    if (m % 5 !== 4) continue;
    if (m === 149) { end(); out('  ended'); }
    const { rows, at } = await readActionable(rig.sql);
    const truth = rig.partner.world.truth();
    const wrong = rows.filter((r) => { const t = truth.get(r.sku); return JSON.stringify(Object.entries(t?.answer === 'record' ? t.sizeMap : {}).filter(([, p]) => p !== null).toSorted()) !== JSON.stringify(Object.entries(r.prices).filter(([, p]) => p !== null).toSorted()); });
    for (const sku of [...wrongSince.keys()]) if (!wrong.some((w) => w.sku === sku)) wrongSince.delete(sku);
    for (const w of wrong) if (!wrongSince.has(w.sku)) wrongSince.set(w.sku, at);
    if (m % 20 !== 19 && m > 20) continue;
    const s = await sayAll(day);
    const cov = wrong.filter((w) => w.covered).length;
    const longest = Math.max(0, ...[...wrongSince.values()].map((t) => at - t)) / 60000;
    out(`  ${m + 1} min: ${s.states.readyz}/${s.states.status} [${s.reasons.map((r) => r.code).join(' ')}] actionable ${rows.length} (covered ${rows.filter((r) => r.covered).length}), wrong ${wrong.length} (covered ${cov}), longest ${longest.toFixed(0)} min`);
  }
  out(`  log: ${day.tally(from).slice(0, 14).map(([k, n]) => `${k} ${n}`).join(', ')}`);
  await presence.end();
}, 900_000);
