import { expect, test } from 'vitest';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { own } from './stats.ts';

const create = () => createMetrics({ version: '1.2.3' });

test('a download is measured in seconds', async () => {
  const metrics = create();
  metrics.count({ event: 'manifest.downloaded', outcome: 'ok', status: undefined, ms: 2500 });
  metrics.count({ event: 'manifest.downloaded', outcome: 'file-corrupt', status: undefined, ms: 500 });
  const lines = own(await metrics.text());
  expect(lines).toContain('catalog_mirror_partner_request_duration_seconds_sum{route="manifest-file"} 3');
  expect(lines).toContain('catalog_mirror_partner_request_duration_seconds_count{route="manifest-file"} 2');
  expect(lines).toContain('catalog_mirror_partner_requests_total{route="manifest-file",outcome="ok"} 1');
});

test('a line of a manifest counts once, as applied or as rejected', async () => {
  const metrics = create();
  metrics.count({ event: 'manifest.rejected-lines', rejected: 7, reasons: { 'not-json': 4, 'bad-sku': 3 } });
  metrics.count({
    event: 'task.ended',
    task: 'manifest',
    outcome: { kind: 'done', nextInMs: 0, counts: { lines: 1000, rejected: 7, because: 'fill' } },
    ms: 1,
  });
  const lines = own(await metrics.text());
  expect(lines).toContain('catalog_mirror_manifest_lines_total{outcome="applied"} 993');
  expect(lines).toContain('catalog_mirror_manifest_lines_total{outcome="rejected"} 7');
  expect(lines).toContain('catalog_mirror_manifest_rejected_lines_total{reason="not-json"} 4');
  expect(lines).toContain('catalog_mirror_rebaselines_total{because="fill"} 1');
});

test('a manifest that is not applied counts no applied lines', async () => {
  const metrics = create();
  metrics.count({
    event: 'task.ended',
    task: 'manifest',
    outcome: { kind: 'failed', nextInMs: 0, because: 'shrunk', hint: '' },
    ms: 1,
  });
  expect(own(await metrics.text())).toContain('catalog_mirror_manifest_lines_total{outcome="applied"} 0');
});
