// `node scripts/grafana-board.ts [--check]`: writes packaging/grafana/berth.json, the board for Grafana, from the list of panels below. As a
// list they can be read and reviewed; the board's own format cannot.

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

interface Panel {
  readonly title: string;
  readonly unit?: string;
  readonly queries: readonly (readonly [expr: string, legend: string])[];
}

const quantiles = (metric: string): Panel['queries'] =>
  (['0.5', '0.99'] as const).map((q) => [
    `histogram_quantile(${q}, sum by (le) (rate(${metric}_bucket[$__rate_interval])))`,
    `p${Number(q) * 100}`,
  ]);

const rows: readonly (readonly [title: string, panels: readonly Panel[]])[] = [
  [
    'Fleet',
    [
      { title: 'Hosts by state', queries: [['max by (state) (berth_hosts_by_state)', '{{state}}']] },
      { title: 'Instances by phase', queries: [['max by (phase) (berth_instances_by_phase)', '{{phase}}']] },
      {
        title: 'Claimed, by pool and class',
        unit: 'percentunit',
        queries: [
          ['max by (pool, class) (berth_claimed) / max by (pool, class) (berth_capacity)', '{{pool}} {{class}}'],
        ],
      },
      { title: 'Survives the loss of one host', queries: [['max(berth_fleet_survives_host_loss)', 'survives']] },
    ],
  ],
  [
    'Queue',
    [
      {
        title: 'Waiting for a host, by project',
        queries: [['max by (project) (berth_queue_instances)', '{{project}}']],
      },
      { title: 'Oldest', unit: 's', queries: [['max by (project) (berth_queue_oldest_seconds)', '{{project}}']] },
      { title: 'Why', queries: [['max by (reason) (berth_queue_reasons)', '{{reason}}']] },
      { title: 'Time until placed', unit: 's', queries: quantiles('berth_scheduling_seconds') },
      { title: 'Boots', unit: 's', queries: quantiles('berth_boot_seconds') },
      {
        title: 'Placements',
        unit: 'ops',
        queries: [['sum(rate(berth_placements_total[$__rate_interval]))', 'placements']],
      },
      { title: 'Jobs by phase', queries: [['max by (phase) (berth_jobs_by_phase)', '{{phase}}']] },
    ],
  ],
  [
    'Servers',
    [
      { title: 'Leader', queries: [['berth_leader', '{{instance}}']] },
      {
        title: 'Requests',
        unit: 'reqps',
        queries: [['sum by (status) (rate(berth_http_request_seconds_count[$__rate_interval]))', '{{status}}']],
      },
      { title: 'Time of requests', unit: 's', queries: quantiles('berth_http_request_seconds') },
      { title: 'Time of commits', unit: 's', queries: quantiles('berth_store_commit_seconds') },
      { title: 'Plans in a commit', queries: quantiles('berth_store_commit_plans') },
      {
        title: 'Reconciles',
        unit: 'ops',
        queries: [['sum by (controller) (rate(berth_reconciles_total[$__rate_interval]))', '{{controller}}']],
      },
      { title: 'Watches', queries: [['sum by (kind) (berth_watches)', '{{kind}}']] },
      { title: 'Agents: longest silence', unit: 's', queries: [['max(berth_agent_lag_seconds)', 'lag']] },
      { title: 'Connections', queries: [['sum by (authenticated) (berth_connections)', '{{authenticated}}']] },
      {
        title: 'Inconsistencies',
        queries: [
          ['max by (code) (berth_verify_findings)', '{{code}}'],
          ['max(berth_verify_oldest_finding_seconds)', 'oldest (s)'],
        ],
      },
    ],
  ],
];

const datasource = { type: 'prometheus', uid: '${datasource}' };
const width = 8;
const height = 7;

function board(): unknown {
  const panels: unknown[] = [];
  let y = 0;
  for (const [title, own] of rows) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title,
      collapsed: false,
      gridPos: { x: 0, y, w: 24, h: 1 },
      panels: [],
    });
    y += 1;
    for (const [i, { title: name, unit = 'short', queries }] of own.entries()) {
      panels.push({
        id: panels.length + 1,
        type: 'timeseries',
        title: name,
        datasource,
        gridPos: { x: (i % 3) * width, y: y + Math.floor(i / 3) * height, w: width, h: height },
        fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
        targets: queries.map(([expr, legendFormat], at) => ({
          refId: String.fromCharCode(65 + at),
          datasource,
          expr,
          legendFormat,
        })),
      });
    }
    y += Math.ceil(own.length / 3) * height;
  }
  return {
    title: 'Berth',
    uid: 'berth',
    tags: ['berth'],
    timezone: 'browser',
    schemaVersion: 39,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', current: {}, hide: 0 },
      ],
    },
    panels,
  };
}

const path = fileURLToPath(new URL('../packaging/grafana/berth.json', import.meta.url));
const text = `${JSON.stringify(board(), null, 2)}\n`;
if (!process.argv.includes('--check')) writeFileSync(path, text);
else if (readFileSync(path, 'utf8') !== text) {
  process.stderr.write('packaging/grafana/berth.json is not what scripts/grafana-board.ts writes\n');
  process.exitCode = 1;
}
