// The configuration of `berth server`: one schema; defaults stand only here. File < environment (BERTH_SERVER_*) < flag.

import { type Static, Type } from 'typebox';
import { FenceConfig } from './fencing/fence-config.ts';
import { HookConfig } from './intake/forges/forge-config.ts';
import { OidcProviderConfig, WorkloadRuleConfig } from './oidc/oidc-config.ts';
import { LimitsConfig } from './limits/limits-config.ts';
import { InventoryFileConfig, InventoryLoginConfig } from './inventory/inventory-config.ts';
import { BusConfig } from './outbox/bus/bus-config.ts';
import { ClustersConfig, ProvisionersConfig } from './spares/provisioners/provisioner-config.ts';
import { Name } from '../api/resources/metadata.ts';

/** Of an exchange, a queue or a routing key. */
const amqpName = (byDefault: string, description: string) =>
  Type.String({ default: byDefault, minLength: 1, maxLength: 250, description });

const tlsFile = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 1024, description: `PEM file of the ${description}` }));

const addressPattern = '^(\\[[0-9a-fA-F:.]+\\]|[A-Za-z0-9.-]+):\\d{1,5}$';

export const ServerConfig = Type.Object(
  {
    listen: Type.String({
      default: '127.0.0.1:7070',
      pattern: addressPattern,
      description: 'address:port',
    }),
    advertiseUrl: Type.Optional(
      Type.String({
        pattern: '^https?://[^\\s/?#,@]+$',
        maxLength: 512,
        description:
          'where agents and clients reach this server; of several servers each announces its own, and clients turn to another when one is away; default: where it listens, unless that is this machine only',
      }),
    ),
    externalUrl: Type.Optional(
      Type.String({
        pattern: '^https?://[^\\s/?#,@]+$',
        maxLength: 512,
        description: 'where people reach this server, for links to logs in commit statuses and results',
      }),
    ),
    store: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 4096,
        description: 'sqlite:PATH, postgres://..., etcd://... or memory:; default: sqlite:<dataDirectory>/berth.db',
      }),
    ),
    newFleet: Type.Boolean({
      default: false,
      description: 'start with an empty fleet although the previous SQLite file is missing',
    }),
    storeWaitMs: Type.Integer({
      default: 60_000,
      minimum: 0,
      maximum: 86_400_000,
      description: 'how long the start waits for a store that is not available yet',
    }),
    dataDirectory: Type.String({ default: '/var/lib/berth/server', minLength: 1, maxLength: 1024 }),
    masterKeyFile: Type.Optional(
      Type.String({
        pattern: '^/[^\\u0000]*$',
        maxLength: 1024,
        description:
          'file of the master key that encrypts secrets, the same on all servers of one store; default with SQLite: <dataDirectory>/master.key, made at the first start',
      }),
    ),
    masterKeyCommand: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 4096,
        description: 'shell command that prints the master key, in place of masterKeyFile; run at each start',
      }),
    ),
    imageDirectory: Type.Optional(
      Type.String({
        pattern: '^/[^\\u0000]*$',
        maxLength: 1024,
        description:
          'where uploaded images are kept, the same for all servers of one store; default: <dataDirectory>/images',
      }),
    ),
    imageGiBMax: Type.Integer({
      default: 64,
      minimum: 1,
      maximum: 1_048_576,
      description: 'how large an uploaded image may be',
    }),
    blobDir: Type.Optional(
      Type.String({
        pattern: '^/[^\\u0000]*$',
        maxLength: 1024,
        description:
          'where logs and artifacts of jobs are kept, the same for all servers of one store; default: <dataDirectory>/blobs',
      }),
    ),
    logMiBMax: Type.Integer({
      default: 64,
      minimum: 1,
      maximum: 65_536,
      description: "how long a job's log may be; the rest is dropped",
    }),
    artifactsMiBMax: Type.Integer({
      default: 1024,
      minimum: 1,
      maximum: 1_048_576,
      description: 'how large the artifacts of a job may be together',
    }),
    blobGiBMax: Type.Integer({
      default: 64,
      minimum: 1,
      maximum: 1_048_576,
      description: 'of logs and artifacts of a project; those of the jobs that ended first are deleted first',
    }),
    imageMap: Type.Optional(
      Type.String({ description: 'YAML file of images and sizes (ORCH_CONFIG)', maxLength: 1024 }),
    ),
    excludeControlPlaneHosts: Type.Boolean({
      default: false,
      description: 'place no instances on the host of the machine that this server runs on',
    }),
    tlsCertificate: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1024,
        description: 'PEM file of the certificate and its chain: serve HTTPS; with tlsKey',
      }),
    ),
    tlsKey: Type.Optional(Type.String({ minLength: 1, maxLength: 1024, description: 'PEM file of its private key' })),
    tls: Type.Optional(
      Type.Boolean({
        description:
          "serve HTTPS, with a certificate of the fleet's own authority unless tlsCertificate is set; default: where other machines can connect",
      }),
    ),
    tlsNames: Type.Array(
      Type.String({ pattern: '^[A-Za-z0-9*]([A-Za-z0-9_.:-]{0,251}[A-Za-z0-9])?$', maxLength: 253 }),
      {
        default: [],
        maxItems: 64,
        uniqueItems: true,
        description: 'further host names and addresses for the certificate that the server makes for itself',
      },
    ),
    insecureHttp: Type.Boolean({ default: false, description: 'serve plain HTTP to other machines' }),
    insecure: Type.Boolean({ default: false, description: 'the older name of insecureHttp' }),
    logLevel: Type.Enum(['debug', 'info', 'warn', 'error', 'silent'], { default: 'info' }),
    logFormat: Type.Enum(['auto', 'text', 'json'], {
      default: 'auto',
      description: 'text is for people; auto: text on a terminal, JSON elsewhere',
    }),
    offlineAfterMs: Type.Integer({ default: 60_000, minimum: 1_000, maximum: 86_400_000 }),
    hostDownAfterMs: Type.Integer({
      default: 300_000,
      minimum: 1_000,
      maximum: 30 * 86_400_000,
      description:
        'a host that is silent for this long is down: instances that ask for it are replaced; not before offlineAfterMs',
    }),
    fencing: Type.Optional(FenceConfig),
    massLossHoldMs: Type.Integer({
      default: 600_000,
      minimum: 0,
      maximum: 30 * 86_400_000,
      description:
        'when a third of the hosts fall silent together, nothing is replaced for this long after they are down',
    }),
    massLossIntervalMs: Type.Integer({
      default: 60_000,
      minimum: 0,
      maximum: 86_400_000,
      description: 'then the instances of one host are replaced in each of these',
    }),
    heartbeatMs: Type.Integer({ default: 10_000, minimum: 100, maximum: 3_600_000 }),
    leaderLeaseMs: Type.Integer({
      default: 6_000,
      minimum: 500,
      maximum: 600_000,
      description: 'with several servers on one store, another takes over when the leader is silent for this long',
    }),
    restartDelayMs: Type.Integer({ default: 15_000, minimum: 0, maximum: 86_400_000 }),
    restartDelayMsMax: Type.Integer({ default: 300_000, minimum: 0, maximum: 86_400_000 }),
    eventsKeptMs: Type.Integer({ default: 86_400_000, minimum: 60_000 }),
    eventsMax: Type.Integer({
      default: 50_000,
      minimum: 100,
      maximum: 10_000_000,
      description: 'the oldest are deleted first',
    }),
    idempotencyKeptMs: Type.Integer({ default: 86_400_000, minimum: 60_000 }),
    idempotencyMax: Type.Integer({ default: 1_000_000, minimum: 1_000, description: 'the oldest are deleted first' }),
    jobsKeptMs: Type.Integer({
      default: 7 * 86_400_000,
      minimum: 60_000,
      description: 'how long jobs that have ended are kept',
    }),
    tasksKeptMs: Type.Integer({
      default: 3_600_000,
      minimum: 60_000,
      maximum: 365 * 86_400_000,
      description: 'how long tasks that have ended are kept, and the answers of /result with them',
    }),
    scheduleTtlMs: Type.Integer({
      default: 3_600_000,
      minimum: 1_000,
      maximum: 30 * 86_400_000,
      description: 'how long the room of a request to /schedule is held',
    }),
    tracing: Type.Optional(
      Type.String({
        pattern: '^https?://[^\\s?#@]+$',
        maxLength: 2048,
        description:
          'URL of a collector of OpenTelemetry (OTLP over HTTP), as http://127.0.0.1:4318: traces of boots are sent there; default: none',
      }),
    ),
    sourceMetricNames: Type.Boolean({
      default: false,
      description: 'metrics also under the names that Orchard has, with a time series for each host',
    }),
    guestMetrics: Type.Boolean({
      default: false,
      description:
        'metrics also of each guest: six time series for each, for at most 5,000 guests, shown to readers who may read all instances',
    }),
    scheduleWhenFull: Type.Enum(['fail', 'wait'], {
      default: 'fail',
      description: 'what a request to /schedule does while no host has room; wait: its result is "processing"',
    }),
    placementRandomCandidates: Type.Boolean({
      default: false,
      description:
        'allocation candidates of the Placement API come in random order, so that clients that take the first spread over the fleet',
    }),
    placementListen: Type.Optional(
      Type.String({
        pattern: addressPattern,
        description:
          'address:port of a second listener, which serves the Placement API at /; both listeners use TLS, or neither does',
      }),
    ),
    placementNoAuth: Type.Boolean({
      default: false,
      description:
        'for development: the Placement API takes the text in X-Auth-Token for the name of a user, and "admin" may do everything; only on loopback: docs/placement-api.md',
    }),
    scheduleWithoutToken: Type.Optional(
      Type.String({
        ...Name,
        description:
          'programs on this machine may use /schedule without a token; their tasks are of this project: docs/schedule.md',
      }),
    ),
    scheduleAmqpUrl: Type.Optional(
      Type.String({
        pattern: '^amqps?://[^\\s]+$',
        maxLength: 2048,
        description: 'amqp://USER:PASSWORD@HOST:PORT/VHOST of a broker whose messages are requests to /schedule',
      }),
    ),
    scheduleAmqpExchange: amqpName('tasks', 'topic exchange of these messages, and of their results'),
    scheduleAmqpQueue: amqpName('task.schedule', 'queue of these messages, and its routing key'),
    scheduleAmqpProject: Type.String({ ...Name, default: 'default', description: 'project of their tasks' }),
    scheduleAttemptsMax: Type.Integer({
      default: 5,
      minimum: 1,
      maximum: 1_000,
      description: 'a message that finds no host is tried this often, and then goes to QUEUE.dlq',
    }),
    scheduleRetryDelayMs: Type.Integer({
      default: 30_000,
      minimum: 100,
      maximum: 86_400_000,
      description: 'how long it waits between two attempts; QUEUE.retry must be deleted before this is changed',
    }),
    jobsMax: Type.Integer({
      default: 10_000,
      minimum: 10,
      maximum: 1_000_000,
      description: 'the jobs that ended first are deleted first',
    }),
    historyKeptMs: Type.Integer({
      default: 3_600_000,
      minimum: 60_000,
      description: 'how far back changes can be watched',
    }),
    historyRevisionsMax: Type.Integer({
      default: 100_000,
      minimum: 1_000,
      description: 'at most this many changes back',
    }),
    cpuAllocationRatio: Type.Number({
      default: 4,
      minimum: 0.01,
      maximum: 1000,
      description: 'CPU overcommit ratio, if neither host nor pool sets one',
    }),
    agingMs: Type.Integer({
      default: 600_000,
      minimum: 1_000,
      maximum: 86_400_000,
      description: 'the head of a queue gains a point of priority for each of these',
    }),
    starvationMs: Type.Integer({
      default: 600_000,
      minimum: 1_000,
      maximum: 86_400_000,
      description: 'an instance that has waited this long at the head of its queue has a host reserved for it',
    }),
    nominationMs: Type.Integer({
      default: 600_000,
      minimum: 1_000,
      maximum: 86_400_000,
      description: 'how long that reservation lasts',
    }),
    maxConcurrency: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'at most this many instances at once (MAX_CONCURRENCY)',
      }),
    ),
    concurrencyLabel: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9._/-]{1,128}=[A-Za-z0-9._-]{0,63}$',
        description: 'only instances with this label count for maxConcurrency: key=value',
      }),
    ),
    limits: LimitsConfig,
    forges: Type.Array(HookConfig, {
      default: [],
      maxItems: 64,
      description: 'webhooks that become jobs; in the configuration file only',
    }),
    oidc: Type.Array(OidcProviderConfig, {
      default: [],
      maxItems: 16,
      description: 'OpenID providers that people log in with; in the configuration file only',
    }),
    workloadIdentity: Type.Array(WorkloadRuleConfig, {
      default: [],
      maxItems: 256,
      description: 'rules by which tokens of CI systems are accepted; in the configuration file only',
    }),
    webhookAllow: Type.Array(Type.String({ maxLength: 64 }), {
      default: [],
      maxItems: 256,
      description:
        'addresses outside the open network that webhooks may be sent to, also over plain HTTP: subnets, with a port where only that is meant: [10.1.0.0/16:8443]',
    }),
    inventoryFiles: Type.Array(InventoryFileConfig, {
      default: [],
      maxItems: 64,
      description: 'inventories whose lists are in files: docs/inventory.md; in the configuration file only',
    }),
    inventoryLogins: Type.Array(InventoryLoginConfig, {
      default: [],
      maxItems: 64,
      description: 'credentials for the sources of inventories: docs/inventory.md; in the configuration file only',
    }),
    eventBus: Type.Array(BusConfig, {
      default: [],
      maxItems: 16,
      description:
        'brokers that the events of the whole fleet are sent to: docs/event-bus.md; in the configuration file only',
    }),
    provisioners: ProvisionersConfig,
    kubernetes: ClustersConfig,
    probeAllow: Type.Array(Type.String({ maxLength: 64 }), {
      default: [],
      maxItems: 256,
      description:
        'addresses outside the open network that readiness probes of spares may reach, besides the spare itself: subnets, with a port where only that is meant: [10.1.0.0/16:6443]',
    }),
    mcp: Type.Enum(['off', 'read', 'write'], {
      default: 'off',
      description: 'serve the Model Context Protocol at /mcp; read: with tools that change nothing: docs/mcp.md',
    }),
    audit: Type.Boolean({ default: true, description: 'write down who did what: docs/audit-log.md' }),
    auditDirectory: Type.Optional(
      Type.String({
        pattern: '^/[^\\u0000]*$',
        maxLength: 1024,
        description: "folder of this server's audit log; default: <dataDirectory>/audit",
      }),
    ),
    auditFileMiBMax: Type.Integer({
      default: 64,
      minimum: 1,
      maximum: 4096,
      description: 'a file of the audit log is followed by another at this size',
    }),
    auditKeptMs: Type.Integer({
      default: 90 * 86_400_000,
      minimum: 3_600_000,
      maximum: 3_650 * 86_400_000,
      description: 'how long the audit log is kept; whole files are deleted',
    }),
    auditCopy: Type.Enum(['none', 'stdout', 'syslog'], {
      default: 'none',
      description: 'also write the lines of the audit log here; what the reader is too slow for is dropped and counted',
    }),
    capacityMap: Type.Optional(
      Type.Record(
        Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$' }),
        Type.Integer({ minimum: 0, maximum: 1_000_000 }),
        {
          maxProperties: 1000,
          additionalProperties: false,
          description: 'limits per image: ubuntu-22.04=4,illumos-latest=2 (CAPACITY_MAP)',
        },
      ),
    ),
    amqpUrl: Type.Optional(
      Type.String({
        pattern: '^amqps?://[^\\s]+$',
        maxLength: 2048,
        description: 'amqp://USER:PASSWORD@HOST:PORT/VHOST of the broker whose messages become jobs (AMQP_URL)',
      }),
    ),
    amqpPasswordFile: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 4096,
        description: 'file with the password of the broker; amqpUrl then has only the user (AMQP_PASSWORD_FILE)',
      }),
    ),
    amqpCa: tlsFile('authorities that issued the certificate of the broker; default: those that Node trusts (AMQP_CA)'),
    amqpCertificate: tlsFile('certificate that is shown to the broker, with amqpKey (AMQP_CERTIFICATE)'),
    amqpKey: tlsFile('private key of amqpCertificate (AMQP_KEY)'),
    amqpExchange: amqpName('solstice.jobs', 'exchange that messages are published to (AMQP_EXCHANGE)'),
    amqpQueue: amqpName('solstice.jobs.v1', 'queue of the messages; QUEUE.dlq has the dead letters (AMQP_QUEUE)'),
    amqpRoutingKey: amqpName('jobrequest.v1', 'binds the queue to the exchange (AMQP_ROUTING_KEY)'),
    amqpPrefetch: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 64,
        description:
          'no message is taken while this many jobs wait for a place; default: maxConcurrency (AMQP_PREFETCH)',
      }),
    ),
    amqpResultExchange: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 255,
        description: 'exchange that results are published to; default: amqpExchange (AMQP_RESULT_EXCHANGE)',
      }),
    ),
    amqpProject: Type.String({ ...Name, default: 'default', description: 'project of the jobs (AMQP_PROJECT)' }),
  },
  { additionalProperties: false },
);
export type ServerConfig = Static<typeof ServerConfig>;
