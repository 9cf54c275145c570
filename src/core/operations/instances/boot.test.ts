// Firmware and TPM, from the request to the assignment for their host.

import { expect, it } from 'vitest';
import { bootOffers, type DriverOffer } from '../../../api/resources/host.ts';
import type { InstanceSpec } from '../../../api/resources/instance.ts';
import { placement } from '../../controllers/placement.ts';
import { explain } from '../../explain/explain.ts';
import { keys } from '../../state/keys.ts';
import { addRecord, commitPlan, testCache, testContext, testHost, testImage, testInstance } from '../../testing.ts';
import { assignmentOf } from '../assignment.ts';
import { createInstance } from '../instance.ts';

const key = keys.instance('default', 'web');

function placed(spec: Partial<InstanceSpec>, offers: readonly DriverOffer[] = bootOffers) {
  const instance = testInstance('web', { image: 'windows', ...spec });
  const host = testHost('h1', { status: { drivers: [{ name: 'qemu', available: true, offers: [...offers] }] } });
  const cache = testCache([testImage('windows', { firmware: 'uefi', tpm: true }), ...host]);
  addRecord(cache, instance);
  commitPlan(cache, placement.reconcile(cache, key, testContext()));
  const [allocation] = cache.allocationsOfConsumer(instance.metadata.id);
  const current = cache.get('instance', key);
  return { cache, instance, current, assigned: allocation && assignmentOf(allocation, current) };
}

it.each<[string, Partial<InstanceSpec>, object | undefined]>([
  ['what its image needs', {}, { firmware: 'uefi', tpm: true }],
  ['what it asks for itself', { firmware: 'uefi-secure-boot', tpm: false }, { firmware: 'uefi-secure-boot' }],
  ['neither', { firmware: 'bios', tpm: false }, undefined],
])('is placed with %s, and its host learns the same', (_, spec, boot) => {
  const { current, assigned } = placed(spec);
  expect(current?.value.status).toMatchObject({ host: 'h1' });
  expect(current?.value.status.boot).toEqual(boot);
  const { firmware, tpm } = assigned ?? {};
  expect({ firmware, tpm }).toEqual({ firmware: undefined, tpm: undefined, ...boot });
});

it('waits for a host with the packages, and says which', () => {
  const { cache, instance, current } = placed({ tpm: false }, ['tcp']);
  expect(current?.value.status.host).toBeUndefined();
  expect(explain(cache, instance).hosts[0]?.refusals).toContainEqual({
    rule: 'offers',
    reason: 'OffersMissing',
    message: 'its driver qemu has no UEFI firmware: install the package ovmf on the host',
  });
});

it.each([
  ['spec.firmware', { firmware: 'uefi' as const }],
  ['spec.tpm', { tpm: true }],
])('is refused for containers, naming %s', (field, change) => {
  const cache = testCache([testImage('shop', { format: 'container', source: 'docker://docker.io/acme/shop:1' })]);
  const { spec } = testInstance('web', { image: 'shop', ...change });
  const create = () => createInstance(cache, { project: 'default', name: 'web', labels: {}, spec }, testContext());
  expect(create).toThrow(expect.objectContaining({ code: 'InvalidRequest', field }));
});
