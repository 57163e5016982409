import {
  BigValueColorMode,
  BigValueGraphMode,
  BigValueTextMode,
  GraphThresholdsStyleConfigBuilder,
  GraphThresholdsStyleMode,
  LegendDisplayMode,
  LegendPlacement,
  ReduceDataOptionsBuilder,
  SortOrder,
  StackingConfigBuilder,
  StackingMode,
  TooltipDisplayMode,
  VizLegendOptionsBuilder,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import {
  DashboardLinkBuilder,
  DashboardLinkType,
  FieldColorBuilder,
  FieldColorModeId,
  ThresholdsConfigBuilder,
  ThresholdsMode,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';
import * as stats from '@grafana/grafana-foundation-sdk/stat';
import * as lines from '@grafana/grafana-foundation-sdk/timeseries';

/** Every panel asks the data source chosen at the top. */
export const DATASOURCE = { type: 'prometheus', uid: '${datasource}' } as const;

export type Colour = 'green' | 'blue' | 'yellow' | 'orange' | 'red' | 'purple';
export type Unit = 'short' | 'percentunit' | 's' | 'cpm' | 'bytes' | 'bool';

export interface Query {
  readonly expr: string;
  /** `{{label}}` stands for the label's value. */
  readonly legend: string;
}

interface Panel {
  readonly title: string;
  /** What it shows and what to think of it. */
  readonly description: string;
  readonly unit: Unit;
  readonly queries: readonly Query[];
  /** Of 24 columns. */
  readonly width: number;
  /** From which value on which colour holds, ascending; below the first: green. */
  readonly thresholds?: readonly (readonly [number, Colour])[];
  /** The colour below the first threshold. */
  readonly base?: Colour;
  /** What stands there while there is no series, where that is as it should be. */
  readonly noValue?: string;
  /** Files below ops/runbooks, without `.md`. */
  readonly runbooks?: readonly string[];
}

export interface StatPanel extends Panel {
  /** Shows the legend in place of the value, in the base colour. */
  readonly showNames?: true;
  /** Shows the legend in place of the value; a colour for each legend that can be. */
  readonly names?: Readonly<Record<string, Colour>>;
}

export interface LinesPanel extends Panel {
  readonly stacked?: true;
  /** Values may be negative. */
  readonly isSigned?: boolean;
  readonly max?: number;
}

/** A link to a file of the repository, at the address given at the top. */
export function link(title: string, file: string): DashboardLinkBuilder {
  return new DashboardLinkBuilder(title)
    .type(DashboardLinkType.Link)
    .url(`\${repository}/${file}`)
    .targetBlank(true);
}

function common<Builder extends stats.PanelBuilder | lines.PanelBuilder>(
  builder: Builder,
  panel: Panel,
): Builder {
  builder
    .title(panel.title)
    .description(panel.description)
    .datasource(DATASOURCE)
    .unit(panel.unit)
    .span(panel.width)
    .links((panel.runbooks ?? []).map((name) => link(`Runbook: ${name}`, `ops/runbooks/${name}.md`)))
    .thresholds(
      new ThresholdsConfigBuilder()
        .mode(ThresholdsMode.Absolute)
        .steps([
          { value: null, color: panel.base ?? 'green' },
          ...(panel.thresholds ?? []).map(([value, color]) => ({ value, color })),
        ]),
    );
  if (panel.noValue !== undefined) builder.noValue(panel.noValue);
  return builder;
}

const query = ({ expr, legend }: Query, at: number) =>
  new DataqueryBuilder()
    .refId(String.fromCharCode(65 + at))
    .datasource(DATASOURCE)
    .expr(expr)
    .legendFormat(legend);

/** The present value, large. */
export function stat(panel: StatPanel): stats.PanelBuilder {
  const builder = common(new stats.PanelBuilder(), panel)
    .height(5)
    .targets(panel.queries.map((each, at) => query(each, at).instant()))
    .graphMode(BigValueGraphMode.None)
    .colorMode(BigValueColorMode.Background)
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']).values(false));
  if (panel.showNames) return builder.height(8).textMode(BigValueTextMode.Name);
  if (panel.names === undefined) {
    const named = panel.queries.some(({ legend }) => legend.includes('{{'));
    return builder.textMode(named ? BigValueTextMode.ValueAndName : BigValueTextMode.Value);
  }
  builder.textMode(BigValueTextMode.Name);
  for (const [name, fixedColor] of Object.entries(panel.names)) {
    const value = { mode: FieldColorModeId.Fixed, fixedColor };
    builder.overrideByName(name, [{ id: 'color', value }]);
  }
  return builder;
}

/** The course of time. */
export function series(panel: LinesPanel): lines.PanelBuilder {
  const limits = panel.thresholds !== undefined;
  const builder = common(new lines.PanelBuilder(), panel)
    .height(8)
    .targets(panel.queries.map((each, at) => query(each, at).range()))
    .lineWidth(1)
    .fillOpacity(panel.stacked ? 40 : 5)
    .stacking(new StackingConfigBuilder().mode(panel.stacked ? StackingMode.Normal : StackingMode.None))
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.PaletteClassicByName))
    .thresholdsStyle(
      new GraphThresholdsStyleConfigBuilder().mode(
        limits ? GraphThresholdsStyleMode.Dashed : GraphThresholdsStyleMode.Off,
      ),
    )
    .legend(
      new VizLegendOptionsBuilder()
        .showLegend(true)
        .displayMode(LegendDisplayMode.Table)
        .placement(LegendPlacement.Bottom)
        .calcs(['lastNotNull', 'max']),
    )
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending));
  if (panel.isSigned !== true) builder.min(0);
  return panel.max === undefined ? builder : builder.max(panel.max);
}

/** Panels under a heading. */
export interface Row {
  readonly title: string;
  readonly panels: readonly (stats.PanelBuilder | lines.PanelBuilder)[];
}
