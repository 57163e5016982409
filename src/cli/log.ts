import { type HttpConfig, processSources } from '../config/config.ts';
import { openDestination } from '../telemetry/log/destination.ts';
import { createLogger, type Log, logFormOf } from '../telemetry/log/logger.ts';
import { terminalOf } from './terminal.ts';

const STDERR = 2;

/**
 * Opens the log of a command, in the form that LOG_FORMAT asks for: on stdout, or on stderr if stdout is for something
 * else.
 */
export function openLog(
  { log, secrets }: Pick<HttpConfig, 'log' | 'secrets'>,
  to: 'stdout' | 'stderr' = 'stdout',
): Log {
  const { width, colour } = terminalOf(process[to], processSources.env);
  const form = logFormOf(log.format, { isTerminal: width !== null, colour });
  return createLogger({
    level: log.level,
    mirrorName: log.mirrorName,
    secrets,
    form,
    ...(to === 'stderr' && { destination: openDestination(STDERR) }),
  });
}
