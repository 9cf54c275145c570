// Containers, from the request to the assignment for their host; and images with contradictory fields.

import { describe, expect, it } from 'vitest';
import { parse } from '../../api/parse.ts';
import { ImageSpec } from '../../api/resources/image.ts';
import { InstanceSpec } from '../../api/resources/instance.ts';
import { placement } from '../controllers/placement.ts';
import { explain } from '../explain/explain.ts';
import { addRecord, commitPlan, testCache, testContext, testHost, testImage, testInstance } from '../testing.ts';
import { assignmentOf } from './assignment.ts';
import { createInstance } from './instance.ts';
import { createPlainResource } from './plain-resource.ts';

const shop = testImage('shop', { format: 'container', source: 'docker://docker.io/acme/shop:1' });
const images = [
  testImage(),
  shop,
  testImage('proxy', { format: 'container', source: 'docker://docker.io/acme/proxy:1' }),
  testImage('shop-arm', { format: 'container', source: 'docker://docker.io/acme/shop:1', architecture: 'arm64' }),
];

/** Like a user's request: parsed by schema, then decided. Returns the refused field and the reason. */
function refusalOf(act: () => unknown): string {
  try {
    act();
    return 'accepted';
  } catch (error) {
    return error instanceof Error && 'field' in error ? `${String(error.field)}: ${error.message}` : String(error);
  }
}

const one = { name: 'one' };
const two = { name: 'two' };

describe('the containers of an instance', () => {
  const rows: [name: string, spec: object, answer: RegExp][] = [
    ['none are needed', {}, /^accepted$/],
    [
      'all that may be asked',
      {
        cpus: 2,
        memoryMiB: 256,
        ports: [{ guestPort: 443 }],
        containers: [
          {
            name: 'web',
            image: 'proxy',
            command: ['/bin/serve'],
            args: ['--fast'],
            env: { TOKEN: 'x', 'a.b-c': '' },
            ports: [
              { containerPort: 80, hostPort: 8080 },
              { containerPort: 80, protocol: 'udp' },
            ],
            cpus: 0.5,
            memoryMiB: 128,
          },
          { name: 'side', cpus: 1.5, memoryMiB: 128 },
        ],
      },
      /^accepted$/,
    ],
    [
      'of a virtual machine',
      { image: 'tiny', containers: [one] },
      /^spec.containers: image "tiny" is of a virtual machine/,
    ],
    [
      'a part of a CPU for a virtual machine',
      { image: 'tiny', containers: [one, { ...two, cpus: 0.5 }] },
      /^spec.containers\[1\].cpus: .*has whole CPUs only, not 0.5/,
    ],
    [
      'an image that is not there',
      { containers: [{ ...one, image: 'prox' }] },
      /^spec.containers\[0\].image: .*did you mean "proxy"/,
    ],
    [
      'an image of a machine',
      { containers: [one, { ...two, image: 'tiny' }] },
      /^spec.containers\[1\].image: .*of a virtual machine/,
    ],
    ['an image for others', { containers: [{ ...one, image: 'shop-arm' }] }, /^spec.containers\[0\].image: .*arm64/],
    ['one name twice', { containers: [one, two, one] }, /^spec.containers\[2\].name: there are two containers "one"/],
    ['a name with capitals', { containers: [{ name: 'One' }] }, /^spec.containers\[0\].name/],
    ['none at all', { containers: [] }, /^spec.containers: /],
    ['seventeen', { containers: Array.from({ length: 17 }, (_, i) => ({ name: `c${i}` })) }, /^spec.containers: /],
    ['an unknown field', { containers: [{ ...one, memory: 5 }] }, /^spec.containers\[0\].memory: .*memoryMiB/],
    ['a zero byte', { containers: [{ ...one, args: ['a\u0000b'] }] }, /^spec.containers\[0\].args\[0\]/],
    ['a variable that is none', { containers: [{ ...one, env: { 'A=B': '' } }] }, /^spec.containers\[0\].env/],
    [
      'more memory than there is',
      {
        memoryMiB: 100,
        containers: [
          { ...one, memoryMiB: 60 },
          { ...two, memoryMiB: 41 },
        ],
      },
      /^spec.containers\[1\].memoryMiB: .*come to 101, and the instance has 100/,
    ],
    [
      'more CPUs than the instance has',
      { cpus: 1, containers: [{ ...one, cpus: 1.1 }] },
      /^spec.containers\[0\].cpus: .*come to 1.1, and the instance has 1/,
    ],
    [
      'ten tenths of one CPU',
      { cpus: 1, containers: Array.from({ length: 10 }, (_, i) => ({ name: `c${i}`, cpus: 0.1 })) },
      /^accepted$/,
    ],
    [
      'one port twice',
      {
        containers: [
          { ...one, ports: [{ containerPort: 80 }] },
          { ...two, ports: [{ containerPort: 80 }] },
        ],
      },
      /^spec.containers\[1\].ports\[0\].containerPort: .*"one" already/,
    ],
    [
      "the instance's own port again",
      { ports: [{ guestPort: 80 }], containers: [{ ...one, ports: [{ containerPort: 80 }] }] },
      /^spec.containers\[0\].ports\[0\].containerPort/,
    ],
    [
      'one host port twice',
      {
        ports: [{ guestPort: 81, hostPort: 8080 }],
        containers: [{ ...one, ports: [{ containerPort: 80, hostPort: 8080 }] }],
      },
      /^spec.containers\[0\].ports\[0\].hostPort/,
    ],
    [
      'the driver of machines',
      { placement: { driver: 'qemu' } },
      /^spec.placement.driver: image "shop" is of containers/,
    ],
    [
      'the driver of containers for a machine',
      { image: 'tiny', placement: { driver: 'container' } },
      /^spec.placement.driver: image "tiny" is of a virtual machine/,
    ],
    ['a driver that pretends', { placement: { driver: 'fake' } }, /^accepted$/],
  ];
  it.each(rows)('%s', (_name, spec, answer) => {
    const create = () =>
      createInstance(
        testCache(images),
        { project: 'default', name: 'web', labels: {}, spec: parse(InstanceSpec, { image: 'shop', ...spec }, 'spec') },
        testContext(),
      );
    expect(refusalOf(create)).toMatch(answer);
  });
});

describe('an image', () => {
  const digest = `sha256:${'0'.repeat(64)}`;
  const rows: [name: string, spec: object, answer: RegExp][] = [
    ['of containers', { format: 'container', source: 'docker://docker.io/acme/shop:1' }, /^accepted$/],
    ['by its digest', { format: 'container', source: `docker://docker.io/acme/shop@${digest}` }, /^accepted$/],
    [
      'of containers, called a disk',
      { source: 'docker://docker.io/acme/shop:1' },
      /^spec.format: .*set format: container/,
    ],
    [
      'of a disk, called containers',
      { format: 'container', source: 'https://x/y.qcow2' },
      /^spec.source: .*does not begin with docker/,
    ],
    ['without a registry', { format: 'container', source: 'docker://shop:1' }, /^spec.source: .*names no registry/],
    [
      'with an option of some tool',
      { format: 'container', source: 'docker://docker.io/a:1?x' },
      /^spec.source: .*not a tag/,
    ],
    [
      'with a checksum beside it',
      { format: 'container', source: 'docker://docker.io/a:1', checksum: digest },
      /^spec.checksum/,
    ],
    [
      'with a file on hosts',
      { format: 'container', source: 'docker://docker.io/a:1', localPath: '/x' },
      /^spec.localPath/,
    ],
    [
      'for a driver of machines',
      { format: 'container', source: 'docker://docker.io/a:1', backend: 'qemu' },
      /^spec.backend/,
    ],
    ['of a machine, with a pull policy', { source: 'https://x/y', pullPolicy: 'Always' }, /^spec.pullPolicy/],
    ['of a machine, for containers', { source: 'https://x/y', backend: 'container' }, /^spec.backend/],
  ];
  it.each(rows)('%s', (_name, spec, answer) => {
    const input = () => ({ project: '', name: 'new', labels: {}, spec: parse(ImageSpec, spec, 'spec') });
    expect(refusalOf(() => createPlainResource(testCache([]), 'image', input(), testContext()))).toMatch(answer);
  });
});

describe('where they go', () => {
  const drivers = (...names: string[]) => ({ status: { drivers: names.map((name) => ({ name, available: true })) } });
  const placed = (hosts: Record<string, string[]>, spec: Partial<InstanceSpec>) => {
    const records = Object.entries(hosts).flatMap(([name, has]) => testHost(name, drivers(...has)));
    const cache = testCache([...images, ...records]);
    const instance = testInstance('web', spec);
    addRecord(cache, instance);
    commitPlan(cache, placement.reconcile(cache, 'instances/default/web', testContext()));
    const { host } = cache.get('instance', 'instances/default/web')?.value.status ?? {};
    const [allocation] = cache.allocationsOfConsumer(instance.metadata.id);
    return { cache, instance, allocation, host, driver: allocation?.value.driver };
  };

  it('is a host with the driver for containers, whatever else it has', () => {
    const hosts = { a: ['qemu'], b: ['qemu', 'container'], c: ['fake'] };
    expect(placed(hosts, { image: 'shop' })).toMatchObject({ host: 'b', driver: 'container' });
  });

  it('is for a virtual machine never that driver', () => {
    expect(placed({ a: ['container', 'qemu'] }, {})).toMatchObject({ host: 'a', driver: 'qemu' });
    const nowhere = placed({ a: ['container'] }, {});
    expect(nowhere.host).toBeUndefined();
    expect(explain(nowhere.cache, nowhere.instance).hosts[0]?.refusals).toContainEqual({
      rule: 'driver',
      reason: 'DriverMissing',
      message: 'it runs containers only, and the image is of a virtual machine',
    });
  });

  it('is nowhere, with the reason, while no host has it', () => {
    const { cache, instance, host } = placed({ a: ['qemu'] }, { image: 'shop' });
    expect(host).toBeUndefined();
    expect(explain(cache, instance).hosts[0]?.refusals).toContainEqual({
      rule: 'driver',
      reason: 'DriverMissing',
      message: 'it has no driver container, which the image of containers needs',
    });
  });

  it('is a host where the ports of all are free', () => {
    const { cache } = placed(
      { a: ['container'] },
      {
        image: 'shop',
        containers: [{ name: 'web', env: {}, ports: [{ containerPort: 80, hostPort: 8080, protocol: 'tcp' }] }],
      },
    );
    const other = testInstance('other', { image: 'shop', ports: [{ guestPort: 1, hostPort: 8080, protocol: 'tcp' }] });
    expect(explain(cache, other).hosts[0]?.refusals).toContainEqual(
      expect.objectContaining({ rule: 'ports', reason: 'PortConflict' }),
    );
  });

  it('is told all it needs of each', () => {
    const { cache, allocation } = placed(
      { a: ['container'] },
      {
        image: 'shop',
        ports: [{ guestPort: 443, hostPort: 0, protocol: 'tcp' }],
        containers: [
          {
            name: 'web',
            env: { TOKEN: 'secret' },
            ports: [{ containerPort: 80, hostPort: 8080, protocol: 'tcp' }],
            cpus: 0.5,
          },
          { name: 'side', image: 'proxy', env: {}, ports: [], command: ['x'], args: ['y'] },
          { name: 'lost', image: 'gone', env: {}, ports: [] },
        ],
      },
    );
    const instance = cache.get('instance', 'instances/default/web');
    const imageByName = (name: string) => cache.imageByName(name)?.value;
    expect(allocation && assignmentOf(allocation, instance, imageByName)).toMatchObject({
      driver: 'container',
      ports: [{ guestPort: 443 }, { guestPort: 80, hostPort: 8080, protocol: 'tcp' }],
      containers: [
        { name: 'web', imageName: 'shop', image: shop.spec, env: { TOKEN: 'secret' }, cpus: 0.5 },
        {
          name: 'side',
          imageName: 'proxy',
          image: { source: 'docker://docker.io/acme/proxy:1' },
          command: ['x'],
          args: ['y'],
        },
        { name: 'lost', imageName: 'gone' },
      ],
    });
    const plain = placed({ a: ['container'] }, { image: 'shop' });
    const own = plain.cache.get('instance', 'instances/default/web');
    expect(plain.allocation && assignmentOf(plain.allocation, own, imageByName).containers).toEqual([
      { name: 'main', imageName: 'shop', image: shop.spec, env: {} },
    ]);
  });
});
