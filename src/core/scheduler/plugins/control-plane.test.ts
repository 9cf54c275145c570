import { expect, it } from 'vitest';
import { verdictsOn } from './test-rule.ts';

it('hosts of the control plane take nothing where they are excluded, unless their operator says that they are none', () => {
  const excluded = { status: { controlPlane: 'excluded' as const } };
  const verdicts = verdictsOn(
    'control-plane',
    {
      other: {},
      shared: { status: { controlPlane: 'shared' } },
      excluded,
      stated: { spec: { controlPlane: true } },
      corrected: { ...excluded, spec: { controlPlane: false } },
    },
    {},
  );
  expect(verdicts).toMatchObject({ other: 'fits', shared: 'fits', corrected: 'fits' });
  expect(verdicts['stated']).toBe(verdicts['excluded']);
  expect(verdicts['excluded']).toMatch(/^ControlPlaneHost: .*excludeControlPlaneHosts/);
});
