import { describe, expect, it } from 'vitest';
import { parse } from '../../../api/parse.ts';
import { InstanceSpec } from '../../../api/resources/instance.ts';
import { PoolSpec } from '../../../api/resources/pool.ts';
import { commitPlan, testCache, testContext, testImage } from '../../testing.ts';
import { createInstance } from '../instance.ts';
import { createPlainResource } from '../plain-resource.ts';

const shop = testImage('shop', { format: 'container', source: 'docker://docker.io/acme/shop:1' });

function refusalOf(act: () => unknown): string {
  try {
    act();
    return 'accepted';
  } catch (error) {
    return error instanceof Error && 'field' in error ? `${String(error.field)}: ${error.message}` : String(error);
  }
}

function pool(hostPaths: readonly string[]) {
  const cache = testCache([testImage(), shop]);
  const spec = parse(PoolSpec, { hostPaths }, 'spec');
  commitPlan(
    cache,
    createPlainResource(cache, 'pool', { project: '', name: 'own', labels: {}, spec }, testContext()).plan,
  );
  return cache;
}

describe('the folders of a host that containers mount', () => {
  const at = (hostPath: string, path = '/data') => ({ hostPath, path });
  const rows: [name: string, mounts: object[], answer: RegExp, placement?: object][] = [
    ['neither a folder nor a volume', [{ path: '/data' }], /^spec\.containers\[0\]\.mounts\[0\]: .*either/],
    ['both', [{ ...at('/srv/data'), volume: 'data' }], /^spec\.containers\[0\]\.mounts\[0\]: .*either/],
    [
      'a volume of no instance',
      [{ volume: 'data', path: '/data' }],
      /mounts\[0\]\.volume: .*spec\.volumes must name it/,
    ],
    ['an allowed folder', [at('/srv/data')], /^accepted$/],
    ['what is in one', [at('/srv/data/a/b'), at('/srv/data', '/other')], /^accepted$/],
    [
      'one that only begins so',
      [at('/srv/database')],
      /^spec\.containers\[0\]\.mounts\[0\]\.hostPath: .*it allows: \/srv\/data$/,
    ],
    ['one above', [at('/srv')], /mounts\[0\]\.hostPath: pool "own" does not allow \/srv;/],
    ['a way around', [at('/srv/data/../../etc')], /^spec\.containers\[0\]\.mounts\[0\]\.hostPath/],
    ['a way around, hidden', [at('/srv/data/.')], /^spec\.containers\[0\]\.mounts\[0\]\.hostPath/],
    ['two slashes', [at('/srv//data')], /^spec\.containers\[0\]\.mounts\[0\]\.hostPath/],
    ['the root', [at('/')], /^spec\.containers\[0\]\.mounts\[0\]\.hostPath/],
    ['no absolute path', [at('srv/data')], /^spec\.containers\[0\]\.mounts\[0\]\.hostPath/],
    ['a dotted name', [at('/srv/data/..a/.b')], /^accepted$/],
    ['one place twice', [at('/srv/data'), at('/srv/data/a')], /mounts\[1\]\.path: two mounts/],
    ['over the kernel', [at('/srv/data', '/proc/sys')], /mounts\[0\]\.path: \/proc/],
    ['without a pool', [at('/srv/data')], /mounts\[0\]\.hostPath: .*spec\.placement\.pool must name/, {}],
  ];
  it.each(rows)('%s', (_, mounts, answer, placement = { pool: 'own' }) => {
    const spec = { image: 'shop', placement, containers: [{ name: 'main', mounts }] };
    expect(
      refusalOf(() => {
        const parsed = parse(InstanceSpec, spec, 'spec');
        const input = { project: 'default', name: 'web', labels: {}, spec: parsed };
        return createInstance(pool(['/srv/data']), input, testContext());
      }),
    ).toMatch(answer);
  });

  it('are none where a pool allows none', () => {
    expect(refusalOf(() => pool(['/srv/data/']))).toMatch(/^spec\.hostPaths\[0\]/);
    expect(refusalOf(() => pool(['/srv/../etc']))).toMatch(/^spec\.hostPaths\[0\]/);
  });
});

it('a container has no more time to end than its instance', () => {
  const spec = parse(
    InstanceSpec,
    { image: 'shop', stopGraceMs: 5000, containers: [{ name: 'main', stopGraceMs: 6000 }] },
    'spec',
  );
  const create = () =>
    createInstance(testCache([shop]), { project: 'default', name: 'web', labels: {}, spec }, testContext());
  expect(refusalOf(create)).toMatch(/^spec\.containers\[0\]\.stopGraceMs: .*5000/);
});
