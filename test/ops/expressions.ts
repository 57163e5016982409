import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

const OPS = new URL('../../ops/', import.meta.url);
const text = (file: string) => readFileSync(new URL(file, OPS), 'utf8');

export interface Target {
  readonly expr: string;
  readonly legendFormat: string;
  readonly refId: string;
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly datasource?: { readonly uid: string };
  readonly fieldConfig?: {
    readonly defaults: {
      readonly unit?: string;
      readonly thresholds?: { readonly steps: readonly { readonly value: number | null }[] };
      readonly custom?: { readonly stacking?: { readonly mode: string } };
    };
    readonly overrides: readonly { readonly matcher: { readonly options: string } }[];
  };
  readonly links?: readonly { readonly url: string }[];
  readonly targets?: readonly Target[];
}

export interface Dashboard {
  readonly uid: string;
  readonly panels: readonly Panel[];
  readonly links: readonly { readonly url: string }[];
  readonly templating: {
    readonly list: readonly {
      readonly name: string;
      readonly current?: { readonly value: string };
      readonly query?: string | { readonly query: string };
      readonly multi?: boolean;
      readonly includeAll?: boolean;
    }[];
  };
  readonly annotations: { readonly list: readonly { readonly name: string; readonly expr: string }[] };
}

/** The committed text of the dashboard. */
export const DASHBOARD_TEXT = text('grafana/dashboards/catalog-mirror.json');
export const DASHBOARD = JSON.parse(DASHBOARD_TEXT) as Dashboard;

interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

function rulesOf(file: string): Rule[] {
  const { groups } = parse(text(`prometheus/${file}`)) as { groups: { rules: Rule[] }[] };
  return groups.flatMap(({ rules }) => rules);
}

export const RECORDING_RULES = rulesOf('recording.yml');
export const ALERT_RULES = rulesOf('alerts.yml');

/** An expression and its place. */
export interface Expression {
  readonly where: string;
  readonly expr: string;
  /** The unit of a panel; empty for others. */
  readonly unit: string;
}

export const PANEL_EXPRESSIONS: readonly Expression[] = DASHBOARD.panels.flatMap((panel) =>
  (panel.targets ?? []).map(({ expr, refId }) => ({
    where: `panel "${panel.title}" ${refId}`,
    expr,
    unit: panel.fieldConfig?.defaults.unit ?? '',
  })),
);
export const MARK_EXPRESSIONS: readonly Expression[] = DASHBOARD.annotations.list.map(({ name, expr }) => ({
  where: `annotation ${name}`,
  expr,
  unit: '',
}));
export const RULE_EXPRESSIONS: readonly Expression[] = [...RECORDING_RULES, ...ALERT_RULES].map((rule) => ({
  where: rule.record ?? `alert ${rule.alert}`,
  expr: rule.expr,
  unit: '',
}));

/** A metric in an expression, with its matchers as `name="value"`, except those from the dashboard's variables. */
export interface Selector {
  readonly metric: string;
  readonly matchers: readonly string[];
}

/** Returns the metrics that an expression selects. */
export function selectorsOf(expr: string): Selector[] {
  const plain = expr.replaceAll(/#.*$/gm, '');
  const found = plain.matchAll(/\b(catalog_mirror[_:][\w:]+|ALERTS|process_\w+|nodejs_\w+)(?:\{([^}]*)\})?/g);
  return [...found].map(([, metric = '', inside = '']) => ({
    metric,
    matchers: [...inside.matchAll(/(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"/g)]
      .filter(([, , , value = '']) => !value.includes('$'))
      .map(([, label, operator, value]) => `${label}${operator}"${value}"`),
  }));
}
