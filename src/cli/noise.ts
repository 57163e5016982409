import { format } from 'node:util';

/**
 * From here on, what libraries write to the console, and Node.js's own warnings, go to `tell` instead of stdout and stderr,
 * where they would be no log lines and have not been scrubbed.
 */
export function captureNoise(tell: (from: string, text: string) => void): void {
  for (const method of ['debug', 'log', 'info', 'warn', 'error', 'trace'] as const)
    console[method] = (...said: unknown[]) => tell(`console.${method}`, format(...said));
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => tell(name, message));
}
