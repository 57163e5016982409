import { writeFileSync } from 'node:fs';
import { buildDashboard } from './dashboard.ts';

/* npm run dashboard: writes the dashboard that Grafana is provisioned with. */
writeFileSync(
  new URL('dashboards/catalog-mirror.json', import.meta.url),
  `${JSON.stringify(buildDashboard(), null, 2)}\n`,
);
