// The configuration of `berth agent`: one schema; defaults stand only here. File < environment (BERTH_AGENT_*) < flag.

import { type Static, Type } from 'typebox';
import { acceleratorSettings } from './drivers/accelerator-setting.ts';
import { type ChildProvider, ChildProviders, Trait } from '../api/resources/host-rules.ts';
import { Amounts, Labels, Name } from '../api/resources/metadata.ts';
import { imageCredentialFields } from './images/credentials/image-credential-config.ts';
import { repositoryFields } from './runner/repository/repository-config.ts';

const Port = Type.Integer({ minimum: 1, maximum: 65_535 });

export const AgentConfig = Type.Object(
  {
    serverUrl: Type.String({
      default: 'http://127.0.0.1:7070',
      pattern: '^https?://[^\\s/?#,]+(,\\s*https?://[^\\s/?#,]+)*$',
      maxLength: 4096,
      description:
        'http:// or https:// address of the control plane, without a path; of several servers one or more, with commas between: the agent learns the others',
    }),
    token: Type.Optional(
      Type.String({ minLength: 1, maxLength: 512, description: 'the token of this host; better: tokenFile' }),
    ),
    tokenFile: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1024, description: 'file that holds the token of this host' }),
    ),
    insecureHttp: Type.Boolean({
      default: false,
      description: 'send the token of this host to other machines over plain HTTP, where it can be read',
    }),
    ca: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1024,
        description: 'PEM file of authorities to trust, besides those that Node does, for https: servers and images',
      }),
    ),
    hostName: Name,
    dataDirectory: Type.String({
      default: '/var/lib/berth/agent',
      pattern: '^/[^\\u0000]*$',
      maxLength: 512,
      description: 'absolute path; guests, images and what the agent remembers are kept in it',
    }),
    watchdog: Type.Optional(
      Type.String({
        pattern: '^/dev/watchdog[0-9]*$',
        description: 'a watchdog device: it resets this machine when guests that asked for self-stop outlive its lease',
      }),
    ),
    address: Type.Optional(
      Type.String({
        pattern: '^[0-9A-Fa-f:.]{2,45}$',
        description: 'where this machine can be reached, shown with its host; default: its first address',
      }),
    ),
    moveAddress: Type.Optional(
      Type.String({
        pattern: '^([0-9A-Fa-f:.]{2,45}|off)$',
        description:
          'address at which this machine listens for the source while an instance moves to it; off: data passes through the control plane; default: address',
      }),
    ),
    movePorts: Type.Object(
      { first: Port, last: Port },
      {
        additionalProperties: false,
        default: { first: 49_152, last: 49_215 },
        description: 'each instance that moves to this machine uses one of these ports; the default is that of libvirt',
      },
    ),
    drivers: Type.Array(Name, { default: ['qemu'], minItems: 1, maxItems: 16, uniqueItems: true }),
    accelerator: Type.Enum([...acceleratorSettings], {
      default: 'auto',
      description:
        'what guests of the drivers qemu and libvirt run under. auto: KVM where it works, else TCG; kvm: only KVM, and none where it does not work; tcg: emulation, ten times slower',
    }),
    zones: Type.Optional(
      Type.Object(
        {
          dataset: Type.String({
            pattern: '^[A-Za-z0-9][A-Za-z0-9_.:-]*(/[A-Za-z0-9_.:-]+)*$',
            maxLength: 128,
            description: "a mounted ZFS file system that is the driver's alone: rpool/berth",
          }),
          globalNic: Type.String({
            pattern: '^[A-Za-z][A-Za-z0-9_.]{0,29}[0-9]$',
            description: 'the link over which guests get their own: igb0',
          }),
        },
        { additionalProperties: false, description: 'for the driver zones' },
      ),
    ),
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
    containerNetwork: Type.Optional(
      Type.String({
        pattern: '^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$',
        description:
          'a network of the container engine for guests that are containers: on it they reach neither their host (but for hostPortsReached), nor link-local addresses, nor each other; default: the network of the engine, which is open',
      }),
    ),
    imageCacheGiBMax: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_048_576,
        description:
          'images that no guest uses are removed, the longest unused first, while all take more; default: none is',
      }),
    ),
    imageChecksums: Type.Enum(['required', 'recorded'], {
      default: 'recorded',
      description: 'required: nothing is fetched over a network that no checksum stands for',
    }),
    imagePrivateAddresses: Type.Enum(['deny', 'named', 'allow'], {
      default: 'named',
      description:
        'image servers at private addresses: none, those that an image itself names (no public server may redirect there), or all',
    }),
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
        description: 'range of published ports for which no number was chosen',
      },
    ),
    silenceMsMax: Type.Integer({
      default: 300_000,
      minimum: 10_000,
      maximum: 86_400_000,
      description:
        'of a virtual machine that has shown no sign of life for so long after its start (console, address, guest agent) this is said; it runs on',
    }),
    libvirtUri: Type.String({
      default: 'qemu:///system',
      maxLength: 1024,
      description: 'the libvirt of this host, for the driver libvirt: qemu:///system[?socket=PATH] (LIBVIRT_URI)',
    }),
    libvirtNetwork: Type.String({
      default: 'default',
      pattern: '^[A-Za-z0-9_.+-]{1,64}$',
      description:
        "its network that guests are in, started when it is not; user: none, guests' connections are made by QEMU (LIBVIRT_NETWORK)",
    }),
    network: Type.String({
      default: 'user',
      pattern: '^(user|nat|bridge:[A-Za-z0-9_.-]{1,15})$',
      description:
        "what guests of the drivers qemu and libvirt are connected to. user: with qemu each is alone behind a network of QEMU's own, with libvirt they are in libvirtNetwork; nat: a network that the agent makes, as root; bridge:NAME: a bridge of this host",
    }),
    natSubnet: Type.String({
      default: '10.77.0.0/16',
      maxLength: 18,
      description: 'addresses of guests on the network nat: an IPv4 subnet from /16 to /29 that is otherwise unused',
    }),
    natDenied: Type.Array(Type.String({ pattern: '^[0-9]{1,3}(\\.[0-9]{1,3}){3}(/[0-9]{1,2})?$', maxLength: 18 }), {
      default: [],
      maxItems: 256,
      description: 'IPv4 subnets and addresses that guests on the network nat do not reach: [10.0.0.0/8]',
    }),
    metadataTokens: Type.Enum(['optional', 'required'], {
      default: 'optional',
      description: 'required: the metadata service of the network nat answers only who asked for a token first',
    }),
    guestUsers: Type.Object(
      {
        first: Type.Integer({ minimum: 1000, maximum: 4_000_000_000 }),
        count: Type.Integer({ minimum: 0, maximum: 1_000_000 }),
      },
      {
        additionalProperties: false,
        default: { first: 1_900_000_000, count: 65_536 },
        description:
          'user IDs that are otherwise unused: where root runs the agent, each guest of the driver qemu is run by one of its own; count: 0: by root',
      },
    ),
    hostPortsReached: Type.Array(Port, {
      default: [],
      maxItems: 256,
      description:
        'TCP ports of this host that guests of the driver qemu on the network user reach, at 10.0.2.2 and all its addresses, and containers on containerNetwork; others are closed to those that run as users of their own',
    }),
    userPrivateAddresses: Type.Enum(['allow', 'deny'], {
      default: 'allow',
      description:
        'deny: guests on the network user do not reach private addresses (10/8, 172.16/12, 192.168/16, fc00::/7) either, where link-local ones are closed to them',
    }),
    capacity: Type.Optional(
      Type.Unsafe<Amounts>({
        ...Amounts,
        description: 'stated instead of measured: VCPU, MEMORY_MB, DISK_GB, CUSTOM_*',
      }),
    ),
    reserved: Type.Optional(Type.Unsafe<Amounts>({ ...Amounts, description: 'kept back for the host itself' })),
    maintenanceCommand: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), {
        minItems: 1,
        maxItems: 64,
        description:
          'program with arguments for the maintenance of this machine, which ends with a reboot: run when "berth host roll" has emptied the host; default: a person reboots it',
      }),
    ),
    bootIdFile: Type.Optional(
      Type.String({
        pattern: '^/[^\\u0000]*$',
        maxLength: 512,
        description: 'file whose content changes with each boot, instead of that of the kernel',
      }),
    ),
    machineId: Type.Optional(
      Type.String({
        pattern: '^[0-9a-f]{32}$',
        description:
          'overrides /etc/machine-id: hosts with the same machine id share the resources of the machine; 32 hexadecimal digits',
      }),
    ),
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
    vendorDataFile: Type.Optional(
      Type.String({
        pattern: '^/[^\\u0000]*$',
        maxLength: 1024,
        description: 'cloud-init vendor-data for the virtual machines of this host; read again for each',
      }),
    ),
    ...imageCredentialFields,
    ...repositoryFields,
    logLevel: Type.Enum(['debug', 'info', 'warn', 'error', 'silent'], { default: 'info' }),
    logFormat: Type.Enum(['auto', 'text', 'json'], {
      default: 'auto',
      description: 'text is for people; auto: text on a terminal, JSON elsewhere',
    }),
  },
  { additionalProperties: false },
);
export type AgentConfig = Static<typeof AgentConfig>;
