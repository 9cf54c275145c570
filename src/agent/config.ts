// The configuration of `berth agent`: one schema; defaults stand only here. File < environment (BERTH_AGENT_*) < flag.

import { type Static, Type } from 'typebox';
import { type ChildProvider, ChildProviders, Trait } from '../api/resources/host-rules.ts';
import { Amounts, Labels, Name } from '../api/resources/metadata.ts';

const Port = Type.Integer({ minimum: 1, maximum: 65_535 });

export const AgentConfig = Type.Object(
  {
    serverUrl: Type.String({
      default: 'http://127.0.0.1:7070',
      pattern: '^https?://[^\\s/?#]+$',
      description: 'http:// or https:// address of the control plane, without a path',
    }),
    token: Type.Optional(
      Type.String({ minLength: 1, maxLength: 512, description: 'the token of this host; better: tokenFile' }),
    ),
    tokenFile: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1024, description: 'file that holds the token of this host' }),
    ),
    hostName: Name,
    dataDirectory: Type.String({
      default: '/var/lib/berth/agent',
      pattern: '^/[^\\u0000]*$',
      maxLength: 512,
      description: 'absolute path; guests, images and what the agent remembers are kept in it',
    }),
    drivers: Type.Array(Name, { default: ['qemu'], minItems: 1, maxItems: 16, uniqueItems: true }),
    imageRoots: Type.Array(Type.String({ pattern: '^/[^\\u0000]*$', maxLength: 1024 }), {
      default: ['/var/lib/berth/images'],
      maxItems: 64,
      description: 'directories where file: images may lie; [/] allows every file of this host to be shown to guests',
    }),
    containerEngine: Type.Optional(
      Type.String({
        pattern: '^(unix://)?/[^\\u0000]*$',
        maxLength: 512,
        description:
          'unix socket of podman or Docker: a path, or unix:///PATH; default: DOCKER_HOST, then /run/podman/podman.sock or /var/run/docker.sock',
      }),
    ),
    labels: Type.Unsafe<Labels>(Labels),
    publishAddress: Type.String({
      default: '127.0.0.1',
      maxLength: 64,
      description: "where guests' published ports listen",
    }),
    portRange: Type.Object(
      { first: Port, last: Port },
      {
        additionalProperties: false,
        default: { first: 20_000, last: 29_999 },
        description: 'where published ports come from that nobody chose',
      },
    ),
    capacity: Type.Optional(
      Type.Unsafe<Amounts>({
        ...Amounts,
        description: 'stated instead of measured: VCPU, MEMORY_MB, DISK_GB, CUSTOM_*',
      }),
    ),
    reserved: Type.Optional(Type.Unsafe<Amounts>({ ...Amounts, description: 'kept back for the host itself' })),
    devices: Type.Unsafe<readonly ChildProvider[]>({
      ...ChildProviders,
      default: [],
      description:
        'what of this host has room of its own: [{name: gpu0, amounts: {CUSTOM_GPU_MILLI: 1000}, traits: []}]',
    }),
    pciGpus: Type.Boolean({ default: false, description: 'GPUs on the PCI bus are such devices, too' }),
    numaCells: Type.Boolean({ default: false, description: 'CPUs and memory are given out by NUMA cell' }),
    traits: Type.Array(Trait, {
      default: [],
      maxItems: 128,
      description: 'what this host is good for, besides what its processor tells',
    }),
    logLevel: Type.Enum(['debug', 'info', 'warn', 'error', 'silent'], { default: 'info' }),
  },
  { additionalProperties: false },
);
export type AgentConfig = Static<typeof AgentConfig>;
