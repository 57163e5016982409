import { describe, expect, test } from 'vitest';
import { judgeScope } from '../../src/cli/doctor/configuration.ts';
import { scopeText } from '../../src/status/catalog.ts';
import { judgeHealth } from '../../src/status/health.ts';
import { screen } from '../../src/status/screen.ts';
import type { Scope } from '../../src/store/sellers/scope.ts';
import { CASES, factsOf, healthOf, mirrorWith, NOW } from './cases.ts';

const SCOPED: Scope = { scoped: true, rules: 2, moving: false, otherwise: 0 };
const EVERYTHING = { ...SCOPED, scoped: false };
const codesOf = (scope: Scope, stats: Parameters<typeof mirrorWith>[0]['stats'] = {}) =>
  judgeHealth({ ...factsOf(mirrorWith({ stats })), scope }).reasons.map(
    ({ level, code }) => `${level} ${code}`,
  );

describe('the scope', () => {
  test('is shown next to the size of the whole catalog if rules define it', () => {
    const skus = [{ state: 'priced', priceSource: 'live' as const, count: 5000 }];
    expect(scopeText({ skus, outOfScope: 495_000 })).toBe('5,000 of 500,000 SKUs');
    expect(scopeText({ skus, outOfScope: null })).toBeNull();
    const scoped = mirrorWith({ stats: { outOfScope: 80_000 } });
    const text = screen(scoped, healthOf(scoped), NOW, { width: null, ascii: true, colour: false });
    expect(text).toContain('scope       20,000 of 100,000 SKUs');
    const all = mirrorWith({ stats: { outOfScope: null } });
    expect(screen(all, healthOf(all), NOW, { width: null, ascii: true, colour: false })).not.toContain(
      'scope ',
    );
  });

  test('is reported as empty if there are no rules, or if none includes a SKU', () => {
    expect(codesOf(EVERYTHING)).toEqual([]);
    expect(codesOf(SCOPED)).toEqual([]);
    expect(codesOf({ ...SCOPED, rules: 0 })).toEqual(['degraded scope-empty']);
    expect(codesOf({ ...EVERYTHING, rules: 0 })).toEqual([]);
    const nothing = { skus: [], priceAge: [], freshSkus: [], outOfScope: 500, due: [] };
    expect(codesOf(SCOPED, nothing)).toEqual(['degraded scope-empty']);
    expect(codesOf({ ...SCOPED, moving: true }, nothing)).toEqual([]);
    const [reason] = judgeHealth({ ...factsOf(CASES.healthy), scope: { ...SCOPED, rules: 0 } }).reasons;
    expect(reason?.text).toBe(
      'nothing is priced: MIRROR_SCOPE is scope, and catalog.scope has no rule; insert rules into catalog.scope, or set MIRROR_SCOPE=catalog',
    );
  });

  test('is reported if another daemon has a different one', () => {
    expect(codesOf({ ...SCOPED, otherwise: 1 })).toEqual(['degraded scope-differs']);
    expect(codesOf({ ...EVERYTHING, otherwise: 2 })).toEqual(['degraded scope-differs']);
  });

  test('is checked by doctor', () => {
    const config = (scope: 'catalog' | 'scope') =>
      ({ catalog: { scope } }) as Parameters<typeof judgeScope>[0];
    expect(judgeScope(config('catalog'), { ...EVERYTHING, rules: 0 })).toEqual([]);
    expect(judgeScope(config('scope'), { ...EVERYTHING, rules: 0 })).toMatchObject([
      { level: 'WARN', check: 'scope' },
    ]);
    expect(judgeScope(config('scope'), EVERYTHING)).toMatchObject([{ level: 'OK' }]);
  });
});
