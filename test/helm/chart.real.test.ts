// The chart of packaging/helm: rendered by Go's own templates with the functions of Helm that it uses (render.go), and checked against the schemas
// of Kubernetes. Helm itself is in neither registry of this project, so it is not run, and no cluster applies the result.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Ajv } from 'ajv';
import { validate as validStatefulSet } from 'kubernetes-models/_schemas/IoK8sApiAppsV1StatefulSet';
import { validate as validConfigMap } from 'kubernetes-models/_schemas/IoK8sApiCoreV1ConfigMap';
import { validate as validService } from 'kubernetes-models/_schemas/IoK8sApiCoreV1Service';
import { validate as validServiceAccount } from 'kubernetes-models/_schemas/IoK8sApiCoreV1ServiceAccount';
import { validate as validNetworkPolicy } from 'kubernetes-models/_schemas/IoK8sApiNetworkingV1NetworkPolicy';
import { validate as validDisruptionBudget } from 'kubernetes-models/_schemas/IoK8sApiPolicyV1PodDisruptionBudget';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { resolveConfigWithOrigins } from '../../src/api/config.ts';
import { ServerConfig } from '../../src/server/config.ts';
import { unknownFields } from './unknown-fields.ts';

const chart = resolve(import.meta.dirname, '../../packaging/helm/berth');
const textOf = (path: string): string => readFileSync(join(chart, path), 'utf8');
const defaults = parse(textOf('values.yaml'));
const { version } = JSON.parse(readFileSync(join(chart, '../../../package.json'), 'utf8'));
const checkValues = new Ajv({ allErrors: true }).compile(JSON.parse(textOf('values.schema.json')));

type Tree = Readonly<Record<string, unknown>>;
type Labels = Readonly<Record<string, string>>;

/** A Service has the labels themselves. */
interface Selector {
  readonly matchLabels?: Labels;
  readonly [label: string]: unknown;
}

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: unknown;
}

/** What the tests look into. */
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Labels;
  readonly spec?: {
    readonly selector?: Selector;
    readonly podSelector?: Selector;
    readonly template?: {
      readonly metadata: { readonly labels: Labels };
      readonly spec: { readonly containers: readonly { readonly env: readonly Variable[] }[] };
    };
  };
}

interface Validator {
  (data: unknown): boolean;
  readonly errors?: unknown;
}

const validators: Readonly<Record<string, Validator>> = {
  ConfigMap: validConfigMap,
  NetworkPolicy: validNetworkPolicy,
  PodDisruptionBudget: validDisruptionBudget,
  Service: validService,
  ServiceAccount: validServiceAccount,
  StatefulSet: validStatefulSet,
};

const postgres = {
  replicas: 3,
  store: { kind: 'postgres', urlSecret: { name: 'berth-store' } },
  masterKey: { secret: { name: 'berth-master' } },
};
const everything = {
  ...postgres,
  imagePullSecrets: [{ name: 'registry' }],
  advertiseUrl: 'https://berth.example.org',
  tlsNames: ['berth.example.org'],
  config: { logLevel: 'debug', heartbeatMs: 5000, amqpPrefetch: 4 },
  service: { type: 'LoadBalancer', annotations: { 'example.org/pool': 'inner' } },
  nodeSelector: { disk: 'ssd' },
  tolerations: [{ key: 'berth', operator: 'Exists' }],
  persistence: { storageClass: 'fast' },
  networkPolicy: { from: [{ ipBlock: { cidr: '10.0.0.0/8' } }] },
  serviceMonitor: { enabled: true, tokenSecret: { name: 'berth-metrics' } },
  rabbitmq: { enabled: true, passwordSecret: { name: 'berth-rabbitmq' }, persistence: { storageClass: 'fast' } },
};

describe('the Helm chart', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'berth-chart-'));
    execFileSync('gccgo-12', ['-O0', '-o', join(directory, 'render'), join(import.meta.dirname, 'render.go')]);
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const rendered = (given: Tree): { stdout: string; stderr: string } => {
    const names = readdirSync(join(chart, 'templates'));
    const { name, version: chartVersion, appVersion } = parse(textOf('Chart.yaml'));
    const input = {
      templates: Object.fromEntries(names.map((each) => [each, textOf(`templates/${each}`)])),
      values: merged(defaults, given),
      release: { Name: 'fleet', Namespace: 'machines', Service: 'Helm' },
      chart: { Name: name, Version: chartVersion, AppVersion: appVersion },
    };
    return spawnSync(join(directory, 'render'), { input: JSON.stringify(input), encoding: 'utf8' });
  };
  const manifests = (given: Tree): Manifest[] => {
    const { stdout, stderr } = rendered(given);
    expect(stderr).toBe('');
    const texts = Object.entries<string>(JSON.parse(stdout)).filter(([name]) => name.endsWith('.yaml'));
    return texts.flatMap(([, text]) =>
      parseAllDocuments(text, { strict: true, uniqueKeys: true }).flatMap((document) => {
        expect(document.errors).toEqual([]);
        return document.toJS() ?? [];
      }),
    );
  };
  const one = (given: Tree, kind: string, name: string): Manifest => {
    const found = manifests(given).find((each) => each.kind === kind && each.metadata.name === name);
    if (found === undefined) throw new Error(`the chart renders no ${kind} ${name}`);
    return found;
  };
  const environmentOf = (given: Tree): ReadonlyMap<string, Variable> => {
    const [container] = one(given, 'StatefulSet', 'fleet').spec?.template?.spec.containers ?? [];
    return new Map(container?.env.map((each) => [each.name, each]));
  };

  it('has the version of the program', () =>
    expect(parse(textOf('Chart.yaml'))).toMatchObject({ version, appVersion: version }));

  it.each([
    ['SQLite', {}, ['ConfigMap', 'NetworkPolicy', 'Service', 'Service', 'ServiceAccount', 'StatefulSet']],
    [
      'PostgreSQL',
      postgres,
      ['ConfigMap', 'NetworkPolicy', 'PodDisruptionBudget', 'Service', 'Service', 'ServiceAccount', 'StatefulSet'],
    ],
    [
      'everything',
      everything,
      [
        ...['ConfigMap', 'NetworkPolicy', 'NetworkPolicy', 'PodDisruptionBudget', 'Service', 'Service', 'Service'],
        ...['ServiceAccount', 'ServiceMonitor', 'StatefulSet', 'StatefulSet'],
      ],
    ],
  ])('renders with %s what Kubernetes accepts, without a field that it does not know', (_, given, kinds) => {
    const all = manifests(given);
    expect(all.map(({ kind }) => kind).toSorted()).toEqual(kinds);
    for (const manifest of all.filter(({ kind }) => kind !== 'ServiceMonitor')) {
      const validate = validators[manifest.kind]!; // a kind without one fails here
      const unknown = unknownFields(manifest, (seen) => {
        if (!validate(seen)) throw new Error(`${manifest.kind}: ${JSON.stringify(validate.errors)}`);
      });
      expect({ name: manifest.metadata.name, unknown }).toEqual({ name: manifest.metadata.name, unknown: [] });
    }
  });

  it('selects the pods that it makes, and no others', () => {
    const all = manifests(everything);
    const podsOf = (name: string) =>
      all.find((each) => each.kind === 'StatefulSet' && each.metadata.name === name)?.spec?.template?.metadata.labels;
    const [server, rabbitmq] = [podsOf('fleet'), podsOf('fleet-rabbitmq')];
    for (const { kind, metadata, spec } of all) {
      const selector: Selector = (kind === 'NetworkPolicy' ? spec?.podSelector : spec?.selector) ?? {};
      const labels = kind === 'Service' ? selector : selector.matchLabels;
      if (labels === undefined) continue;
      const own = metadata.name.includes('rabbitmq') ? rabbitmq : server;
      expect(own).toMatchObject(labels);
      expect(own === server ? rabbitmq : server).not.toMatchObject(labels);
    }
  });

  it('sets only what the server has in its configuration', () => {
    const environment = environmentOf(everything);
    const variables = Object.fromEntries(
      [...environment].map(([name, { value, valueFrom }]) => [
        name,
        valueFrom === undefined ? value : 'postgres://berth@db/berth',
      ]),
    );
    const { data = {} } = one(everything, 'ConfigMap', 'fleet');
    const { config } = resolveConfigWithOrigins(ServerConfig, {
      file: { path: 'server.yaml', value: parse(data['server.yaml'] ?? '') },
      environment: variables,
      flags: {},
      prefix: 'BERTH_SERVER_',
    });
    expect(config).toMatchObject({
      listen: '0.0.0.0:7070',
      advertiseUrl: 'https://berth.example.org',
      tlsNames: ['fleet', 'fleet.machines.svc', 'berth.example.org'],
      heartbeatMs: 5000,
      amqpUrl: 'amqp://berth@fleet-rabbitmq:5672/berth',
    });
  });

  it('advertises the service where no other URL is given', () =>
    expect(environmentOf({}).get('BERTH_SERVER_ADVERTISE_URL')?.value).toBe('https://fleet.machines.svc:7070'));

  it.each([
    ['several servers with SQLite', { replicas: 2 }, 'set store.kind to postgres or etcd'],
    ['PostgreSQL without its URL', { ...postgres, store: { kind: 'postgres' } }, 'store.urlSecret.name is missing'],
    ['PostgreSQL without a master key', { ...postgres, masterKey: {} }, 'masterKey.secret.name is missing'],
    ['RabbitMQ without a password', { rabbitmq: { enabled: true } }, 'rabbitmq.passwordSecret.name is missing'],
  ])('refuses %s', (_, given, message) => expect(rendered(given).stderr).toContain(message));

  it.each([
    ['the defaults', {}, true],
    ['everything', everything, true],
    ['an unknown key', { replica: 2 }, false],
    ['an unknown store', { store: { kind: 'mysql' } }, false],
    ['a URL without encryption', { advertiseUrl: 'http://berth' }, false],
  ])('has a schema of its values that decides on %s', (_, given, valid) =>
    expect(checkValues(merged(defaults, given))).toBe(valid),
  );
});

/** As Helm merges values: maps key by key, all else replaced. */
function merged(base: unknown, over: unknown): unknown {
  if (!isMap(base) || !isMap(over)) return over;
  return Object.fromEntries(
    [...new Set([...Object.keys(base), ...Object.keys(over)])].map((key) => [
      key,
      key in over ? (key in base ? merged(base[key], over[key]) : over[key]) : base[key],
    ]),
  );
}

function isMap(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
