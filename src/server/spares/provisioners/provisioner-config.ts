// The provisioners of spares and the clusters of readiness probes as they are configured. Secrets are in files that are named here, never
// in the configuration itself.

import { type Static, Type } from 'typebox';
import { Name } from '../../../api/resources/metadata.ts';

const closed = { additionalProperties: false } as const;

/** The answer names the field, so the pattern only has to say what is allowed. */
const file = (description: string) => Type.String({ pattern: '^/[^\\u0000-\\u001f]*$', maxLength: 1024, description });

const url = (description: string) =>
  Type.String({ pattern: '^https?://[^\\s/?#@\\\\]+(/[^\\s#\\\\]*)?$', maxLength: 1024, description });

const variableName = '^[A-Za-z_][A-Za-z0-9_]{0,127}$';
const headerName = "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$";

const byName = <Value extends Parameters<typeof Type.Record>[1]>(key: string, value: Value, description: string) =>
  Type.Record(Type.String({ pattern: key }), value, { maxProperties: 64, additionalProperties: false, description });

const timeoutMs = (byDefault: number, description: string) =>
  Type.Integer({ default: byDefault, minimum: 1_000, maximum: 86_400_000, description });

const AnsibleConfig = Type.Object(
  {
    playbook: file('the playbook that makes the spare'),
    releasePlaybook: Type.Optional(file('the playbook that undoes it; default: releasing runs nothing')),
    inventory: Type.Optional(
      file("file or folder of the inventory, limited to the spare's host; default: one with that host alone"),
    ),
    configFile: Type.Optional(file('an ansible.cfg; default: none, also not /etc/ansible/ansible.cfg')),
    connection: Type.Enum(['ssh', 'local'], { default: 'ssh', description: 'how the generated inventory connects' }),
    user: Type.Optional(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_.-]{0,31}$', description: 'remote user' })),
    privateKeyFile: Type.Optional(file('private key for SSH')),
    // It becomes part of an option of ssh, which has its own ideas about spaces, quotes and "%".
    knownHostsFile: Type.Optional(
      Type.String({
        pattern: '^/[A-Za-z0-9._/-]*$',
        maxLength: 1024,
        description: 'host keys for SSH; default: those of the system',
      }),
    ),
    vaultPasswordFile: Type.Optional(file('password of encrypted variables')),
    variables: Type.Optional(
      byName(
        variableName,
        Type.Union([Type.String({ maxLength: 4096 }), Type.Number(), Type.Boolean()]),
        'further variables of the playbook',
      ),
    ),
    secretVariables: Type.Optional(byName(variableName, file('file with the value'), 'variables with secret values')),
    timeoutMs: timeoutMs(1_800_000, 'a playbook that runs for longer is ended'),
    concurrency: Type.Integer({
      default: 10,
      minimum: 1,
      maximum: 1_000,
      description: 'how many of its playbooks run at the same time',
    }),
    stopMs: Type.Integer({
      default: 10_000,
      minimum: 100,
      maximum: 300_000,
      description: 'from SIGTERM to SIGKILL',
    }),
  },
  closed,
);
export type AnsibleConfig = Static<typeof AnsibleConfig>;

const GitlabConfig = Type.Object(
  {
    url: url('of the GitLab server: https://gitlab.example'),
    project: Type.String({
      pattern: '^[A-Za-z0-9_][A-Za-z0-9_./-]*$',
      maxLength: 255,
      description: 'its number or path: group/name',
    }),
    ref: Type.String({
      pattern: '^[^\\u0000-\\u0020\\u007f]+$',
      maxLength: 255,
      description: 'branch or tag of the pipeline',
    }),
    triggerTokenFile: file('trigger token of the project'),
    apiTokenFile: file('access token that may read pipelines and their variables: read_api, role Maintainer'),
    caFile: Type.Optional(file('PEM file of the authorities of its certificate')),
    variables: Type.Optional(
      byName(variableName, Type.String({ maxLength: 4096 }), 'further variables of the pipeline'),
    ),
    release: Type.Enum(['none', 'trigger'], {
      default: 'none',
      description: 'trigger: releasing starts a pipeline with BERTH_SPARE_ACTION=release',
    }),
    timeoutMs: timeoutMs(3_600_000, 'a pipeline that takes longer counts as failed; one that waits for people too'),
    pollMs: Type.Integer({
      default: 5_000,
      minimum: 100,
      maximum: 600_000,
      description: 'how often its state is read',
    }),
  },
  closed,
);
export type GitlabConfig = Static<typeof GitlabConfig>;

const HttpConfig = Type.Object(
  {
    url: url('a POST to it makes the spare'),
    searchUrl: Type.Optional(
      url('a GET of it finds the spare, {spare} stands for its id; default: it cannot be searched'),
    ),
    releaseUrl: Type.Optional(url('a DELETE of it undoes the spare, with {spare}; default: releasing calls nothing')),
    headers: Type.Optional(
      byName(headerName, Type.String({ pattern: '^[\\x20-\\x7e]*$', maxLength: 1024 }), 'headers'),
    ),
    secretHeaders: Type.Optional(byName(headerName, file('file with the value'), 'headers with secret values')),
    caFile: Type.Optional(file('PEM file of the authorities of its certificate')),
    timeoutMs: timeoutMs(1_800_000, 'a spare that takes longer counts as failed'),
    pollMs: Type.Integer({ default: 5_000, minimum: 100, maximum: 600_000, description: 'how often it is searched' }),
  },
  closed,
);
export type HttpConfig = Static<typeof HttpConfig>;

const ProvisionerConfig = Type.Object(
  {
    ansible: Type.Optional(AnsibleConfig),
    gitlab: Type.Optional(GitlabConfig),
    http: Type.Optional(HttpConfig),
  },
  closed,
);
export type ProvisionerConfig = Static<typeof ProvisionerConfig>;

export const ProvisionersConfig = Type.Record(Type.String({ ...Name }), ProvisionerConfig, {
  default: {},
  maxProperties: 64,
  additionalProperties: false,
  description: 'what prepares spares, by name; in the configuration file only: docs/provisioners.md',
});

const ClusterConfig = Type.Object(
  {
    url: url('of the API server: https://cluster.example:6443'),
    tokenFile: file('token of a service account that may get nodes; read again for each probe'),
    caFile: Type.Optional(file('PEM file of its authority')),
  },
  closed,
);
export type ClusterConfig = Static<typeof ClusterConfig>;

export const ClustersConfig = Type.Record(Type.String({ ...Name }), ClusterConfig, {
  default: {},
  maxProperties: 64,
  additionalProperties: false,
  description: 'clusters whose nodes spares may become, by name; in the configuration file only: docs/provisioners.md',
});
