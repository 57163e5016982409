import type { EmbeddedEvent, EmbeddedLog } from './embedded/events.ts';
import type { Log } from './telemetry/logger.ts';

/** The embedded server's events as log lines. */
export function embeddedLines(log: Log): EmbeddedLog {
  const lines: Readonly<Record<EmbeddedEvent, (detail: Record<string, unknown>) => void>> = {
    embedded_started: (detail) => log.debug({ event: 'embedded.started', ...detail }),
    embedded_server_died: (detail) => log.error({ event: 'embedded.server-died', ...detail }),
    embedded_port_lost: (detail) => log.info({ event: 'embedded.port-lost', ...detail }),
    embedded_watchdog_lost: (detail) => log.warn({ event: 'embedded.watchdog-lost', ...detail }),
    embedded_stale_pid_file_removed: (detail) =>
      log.info({ event: 'embedded.stale-pid-file-removed', ...detail }),
    embedded_orphan_found: (detail) => log.info({ event: 'embedded.orphan-found', ...detail }),
    embedded_data_dir_relocated: (detail) => log.info({ event: 'embedded.data-dir-relocated', ...detail }),
    embedded_binaries_copied: (detail) => log.debug({ event: 'embedded.binaries-copied', ...detail }),
    embedded_links_repaired: (detail) => log.debug({ event: 'embedded.links-repaired', ...detail }),
  };
  return (event, detail) => lines[event](detail);
}
