// The API's description, OpenAPI 3.1, made from the registry. docs/openapi.json is this document; drift fails the build.

import type { TSchema } from 'typebox';
import { Ticket, TicketRequest } from './access-protocol.ts';
import { AssignmentEvent, Heartbeat, Registration, ReportResults, Reports, Session } from './agent-protocol.ts';
import { errorCodes } from './errors.ts';
import { CandidateQuestion, Candidates } from './candidates.ts';
import { Capacity, CapacityQuestion } from './capacity.ts';
import { AuditReport, AuditRequest } from './audit.ts';
import { QueueList } from './queue.ts';
import { Explanation } from './explanation.ts';
import { instanceBatchMax } from './instance-batch.ts';
import { resourceDefinitions } from './resources/index.ts';
import { Labels, Metadata, Name, type ResourceDefinition } from './resources/metadata.ts';
import { HostProviders, ProjectUsage, UsagePage } from './usage.ts';

type Json = Record<string, unknown>;

const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });
const jsonContent = (schema: Json): Json => ({ 'application/json': { schema } });
const linesContent = (schema: Json): Json => ({ 'application/x-ndjson': { schema } });
const parameter = (name: string, where: 'query' | 'path' | 'header', schema: Json, description: string): Json => ({
  name,
  in: where,
  required: where === 'path',
  schema,
  description,
});

/** The whole document; plain JSON, the same for the same registry. */
export function openApiDocument(): Json {
  const paths: Json = {};
  const schemas: Json = { ...commonSchemas() };
  for (const definition of Object.values(resourceDefinitions)) {
    Object.assign(schemas, schemasOf(definition));
    Object.assign(paths, pathsOf(definition));
  }
  Object.assign(paths, instancePaths(), imagePaths(), fleetPaths(), agentPaths(), processPaths());
  return {
    openapi: '3.1.0',
    info: {
      title: 'Berth',
      version: '1',
      description:
        'Places virtual machines and containers on a fleet of hosts, keeps them as asked, and says why each is where it is.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    security: [{ token: [] }],
    paths,
    components: { schemas, securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
  };
}

function title(kind: string): string {
  return kind.charAt(0).toUpperCase() + kind.slice(1);
}

function commonSchemas(): Json {
  const codes = Object.entries(errorCodes).map(([code, { status, meaning }]) => `${code} (${status}): ${meaning}`);
  return {
    Metadata: plain(Metadata),
    Explanation: plain(Explanation),
    TicketRequest: plain(TicketRequest),
    Ticket: plain(Ticket),
    Candidates: plain(Candidates),
    Capacity: plain(Capacity),
    QueueList: plain(QueueList),
    AuditRequest: plain(AuditRequest),
    AuditReport: plain(AuditReport),
    UsagePage: plain(UsagePage),
    HostProviders: plain(HostProviders),
    ProjectUsage: plain(ProjectUsage),
    CapacityQuestion: plain(CapacityQuestion),
    CandidateQuestion: plain(CandidateQuestion),
    PlannedInstance: {
      allOf: [
        ref('Instance'),
        { type: 'object', required: ['explanation'], properties: { explanation: ref('Explanation') } },
      ],
    },
    Registration: plain(Registration),
    Session: plain(Session),
    Heartbeat: plain(Heartbeat),
    Reports: plain(Reports),
    ReportResults: plain(ReportResults),
    AssignmentEvent: plain(AssignmentEvent),
    NewInstanceBatch: {
      type: 'object',
      required: ['items'],
      additionalProperties: false,
      properties: {
        items: { type: 'array', minItems: 1, maxItems: instanceBatchMax, items: ref('NewInstance') },
      },
    },
    InstanceBatch: {
      type: 'object',
      required: ['items'],
      properties: {
        items: {
          type: 'array',
          description: 'in the order asked for; the field of an error begins with `items[i]`',
          items: {
            anyOf: [
              { type: 'object', required: ['instance'], properties: { instance: ref('Instance') } },
              ref('Error'),
            ],
          },
        },
      },
    },
    Error: {
      type: 'object',
      required: ['error'],
      properties: {
        error: {
          type: 'object',
          required: ['code', 'message'],
          properties: {
            code: { type: 'string', enum: Object.keys(errorCodes), description: codes.join('\n') },
            message: { type: 'string', description: 'for people' },
            field: { type: 'string', description: 'the place in the request, as `spec.ports[0].hostPort`' },
            details: {},
          },
        },
      },
    },
  };
}

function schemasOf(definition: ResourceDefinition): Json {
  const name = title(definition.kind);
  const required = ['kind', 'schemaVersion', 'metadata', 'spec', 'status'];
  const schemas: Json = {
    [`${name}Spec`]: plain(definition.spec),
    [name]: {
      type: 'object',
      description: definition.description,
      required,
      properties: {
        kind: { const: definition.kind },
        schemaVersion: { type: 'integer' },
        metadata: ref('Metadata'),
        spec: ref(`${name}Spec`),
        status: plain(definition.status),
      },
    },
    [`${name}List`]: {
      type: 'object',
      required: ['items', 'revision'],
      properties: {
        items: { type: 'array', items: ref(name) },
        revision: { type: 'integer', description: 'a watch from here misses nothing' },
        epoch: { type: 'string', description: 'of the store; revisions of two epochs cannot be compared' },
        continue: { type: 'string', description: 'for the next page; absent on the last' },
      },
    },
    [`${name}Change`]: {
      type: 'object',
      required: ['type', 'revision'],
      properties: {
        type: { enum: ['put', 'delete', 'bookmark'] },
        revision: { type: 'integer' },
        resource: {
          anyOf: [ref(name), { type: 'object', description: 'of what is deleted: metadata.name and metadata.project' }],
        },
      },
    },
  };
  if (definition.verbs.length > 0) {
    schemas[`New${name}`] = bodySchema(definition, {
      ...(definition.kind === 'instance' ? {} : { required: ['name'] }),
      properties: {
        name: plain(definition.name),
        labels: plain(Labels),
        ...(definition.scope === 'project' ? { project: plain(Name) } : {}),
      },
    });
    schemas[`Changed${name}`] = bodySchema(definition, {
      properties: {
        labels: plain(Labels),
        revision: { type: 'integer', description: 'change only what is still at this revision' },
      },
    });
  }
  return schemas;
}

/** What users send: fields with a default may be left out. */
function bodySchema(definition: ResourceDefinition, metadata: Json): Json {
  return {
    type: 'object',
    required: ['spec'],
    additionalProperties: false,
    properties: {
      metadata: { type: 'object', additionalProperties: false, ...metadata },
      spec: withoutDefaultsRequired(plain(definition.spec)),
    },
  };
}

function withoutDefaultsRequired(schema: Json): Json {
  const properties = schema['properties'];
  const required = schema['required'];
  if (typeof properties !== 'object' || properties === null || !Array.isArray(required)) return schema;
  const hasDefault = new Set(
    Object.entries(properties).flatMap(([name, value]) => (isJson(value) && 'default' in value ? [name] : [])),
  );
  const inner = Object.fromEntries(
    Object.entries(properties).map(([name, value]) => [name, isJson(value) ? withoutDefaultsRequired(value) : value]),
  );
  const still = required.filter((name) => !hasDefault.has(name));
  const { required: _required, ...rest } = schema;
  return { ...rest, properties: inner, ...(still.length ? { required: still } : {}) };
}

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A schema as plain JSON, without what the library keeps beside it. */
function plain(schema: TSchema): Json {
  const copy: unknown = JSON.parse(JSON.stringify(schema));
  return isJson(copy) ? copy : {};
}

function answers(success: Json, ...codes: (keyof typeof errorCodes)[]): Json {
  const byStatus = new Map<number, string[]>();
  for (const code of [...codes, 'InvalidRequest', 'Unauthenticated', 'Forbidden', 'Unavailable'] as const) {
    const { status } = errorCodes[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const errors = [...byStatus]
    .sort(([a], [b]) => a - b)
    .map(([status, names]) => [String(status), { description: names.join(', '), content: jsonContent(ref('Error')) }]);
  return { ...success, ...Object.fromEntries(errors) };
}

const projectParameter = parameter('project', 'query', { type: 'string', default: 'default' }, 'whose it is');
const nameParameter = parameter('name', 'path', { type: 'string' }, 'name or id');

function pathsOf(definition: ResourceDefinition): Json {
  const name = title(definition.kind);
  const project = definition.scope === 'project' ? [projectParameter] : [];
  const tags = [definition.plural];
  const ok = (schema: Json, status = 200): Json => ({
    [status]: { description: 'done', content: jsonContent(schema) },
  });
  const collection: Json = {
    get: {
      tags,
      operationId: `list${name}s`,
      summary: `List or watch ${definition.plural}`,
      parameters: [
        ...(definition.scope === 'project'
          ? [parameter('project', 'query', { type: 'string' }, 'only of this project')]
          : []),
        parameter('selector', 'query', { type: 'string' }, '`tier=web,zone!=a,gpu,!old`'),
        ...(definition.kind === 'event'
          ? [parameter('subject', 'query', { type: 'string' }, 'name or id of what the events are about')]
          : []),
        parameter('limit', 'query', { type: 'integer', minimum: 1, maximum: 5000, default: 500 }, 'items a page'),
        parameter('continue', 'query', { type: 'string' }, 'what the page before gave'),
        parameter(
          'watch',
          'query',
          { type: 'boolean', default: false },
          'answer with every change after `revision`, endlessly',
        ),
        parameter('revision', 'query', { type: 'integer' }, 'for a watch: where to begin; default: now'),
        parameter(
          'epoch',
          'query',
          { type: 'string' },
          'for a watch: that of the list that `revision` is of; refused with `Compacted` when the store was restored since',
        ),
      ],
      responses: answers(
        {
          200: {
            description: 'a page, or with `watch` one change a line',
            content: { ...jsonContent(ref(`${name}List`)), ...linesContent(ref(`${name}Change`)) },
          },
        },
        'Compacted',
      ),
    },
  };
  const single: Json = {
    get: {
      tags,
      operationId: `get${name}`,
      summary: `Get one`,
      parameters: [nameParameter, ...project],
      responses: answers(ok(ref(name)), 'NotFound'),
    },
  };
  if (definition.verbs.includes('create')) {
    collection['post'] = {
      tags,
      operationId: `create${name}`,
      summary: 'Create one; durable when it answers',
      parameters: [
        parameter(
          'Idempotency-Key',
          'header',
          { type: 'string' },
          'a repeated create with the same key answers what the first one made',
        ),
        parameter(
          'dryRun',
          'query',
          { type: 'boolean', default: false },
          definition.kind === 'instance'
            ? 'make nothing: answer what it would be, with an explanation of where it would go, or why nowhere'
            : 'make nothing: answer what it would be',
        ),
        ...(definition.kind === 'instance' ? hostPageParameters : []),
      ],
      requestBody: { required: true, content: jsonContent(ref(`New${name}`)) },
      responses: answers(
        {
          ...ok(ref(name), 201),
          ...ok(definition.kind === 'instance' ? { anyOf: [ref(name), ref('PlannedInstance')] } : ref(name)),
        },
        'AlreadyExists',
        'IdempotencyMismatch',
        'StoreFull',
      ),
    };
  }
  if (definition.verbs.includes('replace')) {
    single['put'] = {
      tags,
      operationId: `replace${name}`,
      summary: 'Replace labels and spec',
      parameters: [nameParameter, ...project],
      requestBody: { required: true, content: jsonContent(ref(`Changed${name}`)) },
      responses: answers(ok(ref(name)), 'NotFound', 'RevisionMismatch', 'Conflict', 'StoreFull'),
    };
  }
  if (definition.verbs.includes('delete')) {
    single['delete'] = {
      tags,
      operationId: `delete${name}`,
      summary: 'Delete one',
      parameters: [
        nameParameter,
        ...project,
        parameter('ifRevision', 'query', { type: 'integer' }, 'only if it is still at this revision'),
        ...(definition.kind === 'host'
          ? [parameter('force', 'query', { type: 'boolean', default: false }, 'although it holds room for instances')]
          : []),
      ],
      responses: answers(ok(ref(name)), 'NotFound', 'RevisionMismatch', 'Conflict'),
    };
  }
  return { [`/v1/${definition.plural}`]: collection, [`/v1/${definition.plural}/{name}`]: single };
}

const hostPageParameters = [
  parameter(
    'limit',
    'query',
    { type: 'integer', minimum: 0, maximum: 5000, default: 20 },
    'hosts that are told of one by one',
  ),
  parameter('continue', 'query', { type: 'string' }, 'what the page before gave'),
];

function instancePaths(): Json {
  const tags = ['instances'];
  return {
    '/v1/instances/batch': {
      post: {
        tags,
        operationId: 'createInstances',
        summary: 'Create many, each made or refused on its own; all durable when it answers',
        parameters: [
          parameter(
            'Idempotency-Key',
            'header',
            { type: 'string' },
            'item i counts as a create with the key `<key>/<i>`',
          ),
        ],
        requestBody: { required: true, content: jsonContent(ref('NewInstanceBatch')) },
        responses: answers(
          { 200: { description: 'done', content: jsonContent(ref('InstanceBatch')) } },
          'PayloadTooLarge',
        ),
      },
    },
    '/v1/instances/{name}/explain': {
      get: {
        tags,
        operationId: 'explainInstance',
        summary: 'Why it is where it is, or nowhere, and what would change that',
        parameters: [nameParameter, projectParameter, ...hostPageParameters],
        responses: answers({ 200: { description: 'done', content: jsonContent(ref('Explanation')) } }, 'NotFound'),
      },
    },
    '/v1/instances/{name}/tickets': {
      post: {
        tags,
        operationId: 'makeTicket',
        summary: 'Let a browser into its guest once, within a minute',
        parameters: [nameParameter, projectParameter],
        requestBody: { required: true, content: jsonContent(ref('TicketRequest')) },
        responses: answers(
          { 201: { description: 'made', content: jsonContent(ref('Ticket')) } },
          'InvalidRequest',
          'NotFound',
        ),
      },
    },
    ...Object.fromEntries(
      Object.entries(waysIn).map(([way, { summary, parameters }]) => [
        `/v1/instances/{name}/${way}`,
        {
          get: {
            tags,
            operationId: `open${title(way.split('/', 1)[0] ?? '')}`,
            summary,
            parameters: [nameParameter, projectParameter, ...parameters],
            responses: answers(
              { 101: { description: 'a WebSocket with the subprotocol berth.v1: docs/access.md' } },
              'NotFound',
              'Conflict',
              'HostUnreachable',
              'TooManyRequests',
            ),
          },
        },
      ]),
    ),
    '/v1/instances/{name}/log': {
      get: {
        tags,
        operationId: 'readLog',
        summary: 'What its console said',
        parameters: [
          nameParameter,
          projectParameter,
          parameter(
            'offset',
            'query',
            { type: 'integer', minimum: 0, default: 0 },
            'bytes since the first boot; the header berth-log-offset tells where the answer begins',
          ),
          parameter('follow', 'query', { type: 'boolean', default: false }, 'go on with what comes'),
        ],
        responses: answers(
          { 200: { description: 'raw bytes', content: { 'application/octet-stream': {} } } },
          'NotFound',
          'Conflict',
          'HostUnreachable',
        ),
      },
    },
  };
}

const wholeNumber = { type: 'integer', minimum: 0 };

/** The ways into a guest. */
const waysIn: Readonly<Record<string, { readonly summary: string; readonly parameters: readonly Json[] }>> = {
  console: {
    summary: 'Its serial console',
    parameters: [
      parameter('offset', 'query', wholeNumber, 'begin at this byte of its log'),
      parameter('history', 'query', wholeNumber, 'or so many bytes before its end'),
    ],
  },
  exec: {
    summary: 'A command in it',
    parameters: [
      parameter('session', 'query', { type: 'string' }, 'one that was begun before'),
      parameter('received', 'query', wholeNumber, 'and how much of its output is known'),
    ],
  },
  'ports/{port}': {
    summary: 'A TCP connection to one of its ports',
    parameters: [parameter('port', 'path', { type: 'integer', minimum: 1, maximum: 65_535 }, 'of the guest')],
  },
  vnc: { summary: 'Its screen, as RFB', parameters: [] },
};
function imagePaths(): Json {
  const received = {
    type: 'object',
    required: ['complete', 'receivedBytes'],
    properties: {
      complete: { type: 'boolean' },
      receivedBytes: { type: 'integer', description: 'where the next piece begins' },
      digest: { type: 'string', description: 'of the unpacked file' },
      virtualSizeBytes: { type: 'integer', description: 'the size a guest sees' },
      image: ref('Image'),
    },
  };
  const how = resourceDefinitions.image.spec.properties;
  return {
    '/v1/images/{name}/from-instance': {
      post: {
        tags: ['images'],
        operationId: 'imageFromInstance',
        summary: 'Make an image of the disk of an instance that does not run; the last line has it, or says why not',
        parameters: [
          nameParameter,
          { ...parameter('instance', 'query', { type: 'string' }, 'its name or id'), required: true },
          projectParameter,
        ],
        responses: answers(
          {
            200: {
              description: 'some lines meanwhile, and one at the end',
              content: linesContent({
                type: 'object',
                required: ['type'],
                properties: { type: { enum: ['working', 'done'] }, image: ref('Image'), digest: { type: 'string' } },
              }),
            },
          },
          'NotFound',
          'Conflict',
          'HostUnreachable',
          'PayloadTooLarge',
          'StoreFull',
        ),
      },
    },
    '/v1/images/{name}/content': {
      put: {
        tags: ['images'],
        operationId: 'uploadImage',
        summary: 'Upload the file of an image, in pieces; the last one makes the image or changes it',
        parameters: [
          nameParameter,
          { ...parameter('checksum', 'query', plain(how.checksum), 'of the whole file'), required: true },
          { ...parameter('totalBytes', 'query', plain(how.sizeBytes), 'of the whole file'), required: true },
          parameter(
            'offset',
            'query',
            { type: 'integer', minimum: 0, default: 0 },
            'where in the file the body begins',
          ),
          parameter('format', 'query', plain(how.format), 'once unpacked'),
          parameter('decompress', 'query', plain(how.decompress), 'how it is packed'),
          parameter('architecture', 'query', plain(how.architecture), 'of the guests'),
        ],
        requestBody: {
          required: true,
          description: 'each request may take a minute; `Conflict` tells in `details.receivedBytes` where to go on',
          content: { 'application/octet-stream': {} },
        },
        responses: answers(
          {
            200: { description: 'the file is whole and the image is there', content: jsonContent(received) },
            202: { description: 'more is to come', content: jsonContent(received) },
          },
          'Conflict',
          'PayloadTooLarge',
          'UnsupportedMediaType',
          'StoreFull',
        ),
      },
    },
  };
}

/** What is asked for, in a query string. */
const askedParameters = [
  ['project', 'string', 'whose it would be'],
  ['image', 'string', 'only where this image can run; its defaults count'],
  ['size', 'string', 'a named amount of room'],
  ['cpus', 'integer', 'virtual CPUs'],
  ['memoryMiB', 'integer', 'memory'],
  ['diskGiB', 'integer', 'disk'],
  ['gpus', 'integer', 'whole GPUs'],
  ['pool', 'string', 'only hosts of this pool'],
  ['driver', 'string', 'only by this driver'],
  ['profile', 'string', 'how hosts are preferred'],
  ['hostLabels', 'string', 'only hosts with these labels: `rack=r1,disk=ssd`'],
  [
    'resources',
    'string',
    'as OpenStack Placement is asked: `VCPU:1,MEMORY_MB:256`; also resources1, required, group_policy',
  ],
].map(([name = '', type = '', description = '']) => parameter(name, 'query', { type }, description));

function fleetPaths(): Json {
  return {
    '/v1/usage': {
      get: {
        tags: ['capacity'],
        operationId: 'listUsage',
        summary: 'What hosts have, and how much of it is held',
        parameters: [
          parameter('host', 'query', { type: 'string' }, 'only this one'),
          parameter('limit', 'query', { type: 'integer', minimum: 1, maximum: 5000, default: 500 }, 'hosts a page'),
          parameter('continue', 'query', { type: 'string' }, 'what the page before gave'),
        ],
        responses: answers({ 200: { description: 'done', content: jsonContent(ref('UsagePage')) } }),
      },
    },
    '/v1/hosts/{host}/providers': {
      get: {
        tags: ['capacity'],
        operationId: 'listHostProviders',
        summary: 'The providers of a host, and who holds what of them',
        parameters: [parameter('host', 'path', { type: 'string' }, 'name of the host')],
        responses: answers({ 200: { description: 'done', content: jsonContent(ref('HostProviders')) } }, 'NotFound'),
      },
    },
    '/v1/projects/{project}/usage': {
      get: {
        tags: ['capacity'],
        operationId: 'getProjectUsage',
        summary: 'What the quota of a project counts now, whether it has one or not',
        parameters: [parameter('project', 'path', { type: 'string' }, 'its name')],
        responses: answers({ 200: { description: 'done', content: jsonContent(ref('ProjectUsage')) } }),
      },
    },
    '/v1/queue': {
      get: {
        tags: ['capacity'],
        operationId: 'getQueue',
        summary: 'What waits for a host, first things first, and why each waits',
        parameters: [
          parameter('project', 'query', { type: 'string' }, 'only of this project'),
          parameter(
            'limit',
            'query',
            { type: 'integer', minimum: 1, maximum: 10_000, default: 100 },
            'so many at most',
          ),
        ],
        responses: answers({ 200: { description: 'done', content: jsonContent(ref('QueueList')) } }),
      },
    },
    '/v1/audit': {
      post: {
        tags: ['store'],
        operationId: 'audit',
        summary: 'What of the fleet does not fit together, since when and why; with `apply` its repair',
        requestBody: { content: jsonContent(ref('AuditRequest')) },
        responses: answers({ 200: { description: 'done', content: jsonContent(ref('AuditReport')) } }),
      },
    },
    '/v1/backup': {
      get: {
        tags: ['store'],
        operationId: 'backup',
        summary: 'Everything in the store at one revision, secrets too, as `berth restore` reads it',
        responses: answers({
          200: { description: 'lines of JSON', content: { 'application/octet-stream': {} } },
        }),
      },
    },
    '/v1/capacity': {
      get: {
        tags: ['capacity'],
        operationId: 'getCapacity',
        summary:
          'How many more fit: of what is asked for, or of every size; what strands the rest; what a loss would do',
        parameters: [
          ...askedParameters,
          parameter(
            'losses',
            'query',
            { type: 'integer', minimum: 0, maximum: 2, default: 0 },
            'whether the fleet survives losing so many hosts',
          ),
        ],
        responses: answers({ 200: { description: 'done', content: jsonContent(ref('Capacity')) } }),
      },
      post: {
        tags: ['capacity'],
        operationId: 'findCapacity',
        summary: 'The same, for what a query string has no words for',
        requestBody: { required: true, content: jsonContent(ref('CapacityQuestion')) },
        responses: answers({ 200: { description: 'done', content: jsonContent(ref('Capacity')) } }),
      },
    },
    '/v1/candidates': {
      get: {
        tags: ['capacity'],
        operationId: 'listCandidates',
        summary: 'Hosts that would take what is asked for, the best first; nothing is held',
        parameters: [
          ...askedParameters,
          parameter('limit', 'query', { type: 'integer', minimum: 1, maximum: 1000, default: 20 }, 'hosts at most'),
        ],
        responses: answers({ 200: { description: 'done', content: jsonContent(ref('Candidates')) } }),
      },
      post: {
        tags: ['capacity'],
        operationId: 'findCandidates',
        summary: 'The same, for what a query string has no words for',
        requestBody: { required: true, content: jsonContent(ref('CandidateQuestion')) },
        responses: answers({ 200: { description: 'done', content: jsonContent(ref('Candidates')) } }),
      },
    },
  };
}

function agentPaths(): Json {
  const tags = ['agent'];
  const host = parameter('host', 'path', { type: 'string' }, 'the name of the host that the token is for');
  const call = (operationId: string, summary: string, body: string | undefined, answer: Json): Json => ({
    tags,
    operationId,
    summary,
    parameters: [host],
    ...(body ? { requestBody: { required: true, content: jsonContent(ref(body)) } } : {}),
    responses: answers({ 200: { description: 'done', content: answer } }, 'StaleEpoch', 'Conflict'),
  });
  return {
    '/v1/hosts/{host}/session': {
      put: call('registerHost', 'Begin a session', 'Registration', jsonContent(ref('Session'))),
    },
    '/v1/hosts/{host}/heartbeat': {
      post: call('heartbeat', 'Show that the agent is alive', 'Heartbeat', jsonContent({ type: 'object' })),
    },
    '/v1/hosts/{host}/reports': {
      post: call('reportGuests', 'Report what became of guests', 'Reports', jsonContent(ref('ReportResults'))),
    },
    '/v1/hosts/{host}/assignments': {
      get: call(
        'watchAssignments',
        'What the host should run, endlessly; needs `epoch`',
        undefined,
        linesContent(ref('AssignmentEvent')),
      ),
    },
    '/v1/hosts/{host}/image-content/{hex}': {
      get: {
        ...call('readImageContent', 'A file that was uploaded; ranges are possible', undefined, {}),
        parameters: [host, parameter('hex', 'path', { type: 'string' }, 'SHA-256 of the file')],
        responses: answers(
          { 200: { description: 'raw bytes', content: { 'application/octet-stream': {} } } },
          'NotFound',
        ),
      },
    },
    '/v1/hosts/{host}/images': {
      get: call('listHostImages', 'Images that hosts may need', undefined, jsonContent(ref('ImageList'))),
    },
  };
}

function processPaths(): Json {
  const open = (operationId: string, summary: string): Json => ({
    get: {
      tags: ['process'],
      operationId,
      summary,
      security: [],
      responses: { 200: { description: 'done', content: jsonContent({ type: 'object' }) } },
    },
  });
  return {
    '/healthz': open('isAlive', 'The process answers'),
    '/readyz': open('isReady', 'It follows the store'),
    '/v1/version': open('version', 'Its version'),
    '/metrics': {
      get: {
        tags: ['process'],
        operationId: 'metrics',
        summary: 'What it measures, as Prometheus reads it',
        security: [],
        responses: { 200: { description: 'done', content: { 'text/plain': {} } } },
      },
    },
  };
}
