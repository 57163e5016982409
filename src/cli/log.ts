import { type HttpConfig, processSources } from '../config/config.ts';
import { createLogger, type Log, logFormOf } from '../telemetry/log/logger.ts';
import { terminalOf } from './terminal.ts';

/** The log of a command, on stdout and in the form that LOG_FORMAT asks for. */
export function openLog({ log, secrets }: Pick<HttpConfig, 'log' | 'secrets'>): Log {
  const { width, colour } = terminalOf(process.stdout, processSources.env);
  const form = logFormOf(log.format, { isTerminal: width !== null, colour });
  return createLogger({ level: log.level, mirrorName: log.mirrorName, secrets, form });
}
