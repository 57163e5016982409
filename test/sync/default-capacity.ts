import type { CapacityInput } from '../../src/sync/live/capacity.ts';

export const DAY = 1440;
/** Half a million SKUs under the defaults of the configuration. */
export const INPUT: CapacityInput = {
  skus: 500_000,
  liveShare: 0.05,
  requestsPerMinute: 118,
  answerSeconds: null,
  mostUnderWay: 32,
  bulkMaxSkus: 100,
  liveBudget: 5,
  liveCeiling: null,
  livePolicy: 'index',
  liveMinutes: 30,
  sweepMinutes: DAY,
  sweepMinAgeMinutes: 30,
  metadataMinutes: 7 * DAY,
  deltaMinutes: 5,
  snapshotMinutes: 360,
  liveGroups: null,
  liveMovesEvery: 360,
  snapshotMovesEvery: 3 * DAY,
};
