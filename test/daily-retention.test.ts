import { expect, test } from 'vitest';
import { ConfigError, loadConfig } from '../src/config/config.ts';

const DAY_MS = 86_400_000;

const historyOf = (env: Record<string, string>) => loadConfig(env, () => '', { need: 'database' }).history;

function variablesOf(env: Record<string, string>): string[] {
  try {
    historyOf(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(({ variable }) => variable);
    throw error;
  }
  return [];
}

test('daily prices must be kept at least as long as the changes', () => {
  expect(variablesOf({ DAILY_RETENTION: '8d', HISTORY_RETENTION: '9d' })).toEqual(['DAILY_RETENTION']);
  expect(variablesOf({ DAILY_RETENTION: '8d' })).toEqual(['DAILY_RETENTION']);
  expect(variablesOf({ DAILY_RETENTION: '6d' })).toEqual(['DAILY_RETENTION']);
  expect(historyOf({ DAILY_RETENTION: '9d', HISTORY_RETENTION: '9d' })).toEqual({
    retentionMs: 9 * DAY_MS,
    dailyRetentionMs: 9 * DAY_MS,
  });
  expect(historyOf({ HISTORY_RETENTION: '9d' }).dailyRetentionMs).toBe(0);
});
