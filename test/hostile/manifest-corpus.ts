import { describe, expect, test } from 'vitest';
import type { ManifestCase } from './manifest-case.ts';
import type { HostileMirror } from './mirror.ts';

/**
 * Tests that each case has a named outcome, is counted, and leaves every table unchanged, and that the process
 * that reads them all never exceeds `ceilingMiB` of resident memory.
 */
export function refuseAll(mirror: HostileMirror, cases: readonly ManifestCase[], ceilingMiB: number): void {
  describe('a malformed manifest changes nothing, and its outcome is named and counted', () => {
    test.each(cases)('$name', async ({ because, request, rejected, replies }) => {
      const before = await mirror.digest();
      const ended = await mirror.run('manifest', replies);
      const after = await mirror.digest();
      if (JSON.stringify(after) !== JSON.stringify(before)) await mirror.restore();

      expect(ended).toMatchObject({ kind: 'failed', error: null });
      expect(because).toContain(ended.because);
      expect(after).toEqual(before);
      expect(ended.moved).toMatchObject({ [`syncs_total manifest ${String(ended.because)}`]: 1 });
      if (request !== null) expect(ended.moved[`partner_requests_total ${request}`]).toBeGreaterThan(0);
      if (rejected !== null)
        expect(ended.moved).toMatchObject({
          [`manifest_rejected_lines_total ${rejected.reason}`]: rejected.lines,
        });
      expect(ended.peakMiB).toBeLessThan(ceilingMiB);
    });
  });

  test('all cases have different names', () => {
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
  });
}
