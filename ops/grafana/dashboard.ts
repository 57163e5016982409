import {
  AnnotationQueryBuilder,
  type Dashboard,
  DashboardBuilder,
  DashboardCursorSync,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  TextBoxVariableBuilder,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { FILES } from '../docs/repository.ts';
import { named, read } from './expressions.ts';
import { type Colour, DATASOURCE, link, type Row } from './panels.ts';
import { calibration } from './rows/calibration.ts';
import { cohorts } from './rows/cohorts.ts';
import { deferred } from './rows/deferred.ts';
import { due } from './rows/due.ts';
import { followers } from './rows/followers.ts';
import { freshness } from './rows/freshness.ts';
import { mirrors } from './rows/mirrors.ts';
import { outcomes } from './rows/outcomes.ts';
import { reports } from './rows/reports.ts';
import { requests } from './rows/requests.ts';
import { runtime } from './rows/runtime.ts';
import { tasks } from './rows/tasks.ts';
import { trust } from './rows/trust.ts';

/** The `uid` that provisioning/datasources gives the Prometheus of docker-compose.yml. */
export const DATASOURCE_UID = 'catalog-mirror-prometheus';

/** In the order in which they are read: from "may I sell by these prices" to the process, and then the other mirrors. */
const ROWS: readonly Row[] = [
  trust,
  freshness,
  calibration,
  due,
  deferred,
  reports,
  followers,
  requests,
  outcomes,
  cohorts,
  tasks,
  runtime,
  mirrors,
];

interface Mark {
  readonly name: string;
  /** Grafana marks the times at which the value is 1, or the time that the value is. */
  readonly expr: string;
  readonly title: string;
  readonly colour: Colour;
  readonly valueIsTime?: true;
}

const MARKS: readonly Mark[] = [
  {
    name: 'Alerts',
    // Without a job: no mirror is scraped at all.
    expr: 'max by (alertname, severity) (ALERTS{alertname=~"CatalogMirror.*", alertstate="firing", job=~"${job:regex}|"})',
    title: '{{alertname}} ({{severity}})',
    colour: 'red',
  },
  {
    name: 'Refusals',
    expr: `${read('backing_off')} == 1`,
    title: 'Back-off after a rejected request',
    colour: 'orange',
  },
  {
    name: 'Pauses',
    expr: `${read('paused')} == 1`,
    title: 'Requests are paused',
    colour: 'purple',
  },
  {
    name: 'Incidents',
    expr: `${read('incident', 'because')} == 1`,
    title: 'Incident: the whole catalog is live-priced ({{because}})',
    colour: 'yellow',
  },
  {
    name: 'Baselines',
    // Grafana's times are milliseconds.
    expr: `1000 * ${read('manifest_applied_timestamp_seconds')}`,
    title: 'A manifest was applied',
    colour: 'blue',
    valueIsTime: true,
  },
];

function annotation({ name, expr, title, colour, valueIsTime }: Mark): AnnotationQueryBuilder {
  return new AnnotationQueryBuilder()
    .name(name)
    .datasource(DATASOURCE)
    .enable(true)
    .iconColor(colour)
    .expr(expr)
    .titleFormat(title)
    .useValueForTime(valueIsTime === true);
}

function withVariables(builder: DashboardBuilder): DashboardBuilder {
  return builder
    .withVariable(
      new DatasourceVariableBuilder('datasource')
        .label('Prometheus')
        .type('prometheus')
        .current({ selected: true, text: 'Prometheus', value: DATASOURCE_UID }),
    )
    .withVariable(
      new QueryVariableBuilder('job')
        .label('Mirror')
        .description('The Prometheus job: one job is one mirror.')
        .datasource(DATASOURCE)
        .query({ query: `label_values(${named('build_info')}, job)`, refId: 'job' })
        .refresh(VariableRefresh.OnTimeRangeChanged)
        .sort(VariableSort.AlphabeticalAsc),
    )
    .withVariable(
      // All = every daemon there is, not `.*`: the runtime's metrics have no prefix, and other programs export them too.
      new QueryVariableBuilder('instance')
        .label('Daemon')
        .datasource(DATASOURCE)
        .query({ query: `label_values(${named('build_info')}{job="$job"}, instance)`, refId: 'instance' })
        .refresh(VariableRefresh.OnTimeRangeChanged)
        .sort(VariableSort.AlphabeticalAsc)
        .multi(true)
        .includeAll(true)
        .current({ selected: true, text: 'All', value: '$__all' }),
    )
    .withVariable(
      new TextBoxVariableBuilder('repository')
        .label('Repository')
        .description('Base URL of the runbooks; the links of the panels start with it.')
        .defaultValue(FILES),
    );
}

/** The dashboard as Grafana imports it. */
export function buildDashboard(): Dashboard {
  const builder = withVariables(
    new DashboardBuilder('catalog-mirror')
      .uid('catalog-mirror')
      .description('Whether the mirrored prices can be trusted, and what limits their freshness.')
      .tags(['catalog-mirror'])
      .time({ from: 'now-6h', to: 'now' })
      .refresh('30s')
      .tooltip(DashboardCursorSync.Crosshair)
      .annotations(MARKS.map(annotation))
      .links([link('README', 'README.md'), link('Runbooks', 'ops/runbooks')]),
  );
  let id = 0;
  for (const { title, panels } of ROWS) {
    builder.withRow(new RowBuilder(title).id((id += 1)));
    for (const panel of panels) builder.withPanel(panel.id((id += 1)));
  }
  return builder.build();
}
