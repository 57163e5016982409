export type EmbeddedEvent =
  | 'embedded_started'
  | 'embedded_server_died'
  | 'embedded_port_lost'
  | 'embedded_watchdog_lost'
  | 'embedded_stale_pid_file_removed'
  | 'embedded_orphan_found'
  | 'embedded_data_dir_relocated'
  | 'embedded_binaries_copied'
  | 'embedded_links_repaired';

export type EmbeddedLog = (event: EmbeddedEvent, detail: Record<string, unknown>) => void;
