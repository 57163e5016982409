import { parse, stringify } from 'yaml';

/** The rules of Prometheus as a resource of the Prometheus operator. In: the texts of the rule files. */
export function prometheusRule(...files: readonly string[]): string {
  const groups = files.flatMap((file) => (parse(file) as { groups: object[] }).groups);
  const resource = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'catalog-mirror', labels: { 'app.kubernetes.io/name': 'catalog-mirror' } },
    spec: { groups },
  };
  const head = [
    '# ops/prometheus/recording.yml and alerts.yml for the Prometheus operator; `npm run docs` writes this file from them.',
    '# If your Prometheus selects rules by a label (ruleSelector), add it: kubectl label prometheusrule catalog-mirror release=…',
  ];
  return `${head.join('\n')}\n${stringify(resource, { lineWidth: 0 })}`;
}
