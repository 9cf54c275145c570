import { expect, it } from 'vitest';
import type { Connection } from '../connection.ts';
import { standingNow } from './domain-standing.ts';
import type { Domain, Libvirt } from '../libvirt.ts';
import { LibvirtError, libvirtErrors } from '../wire/rpc.ts';

const domain: Domain = { name: 'berth-x', uuid: '6f0c2f4e-0000-4000-8000-000000000000', id: 1 };

/** libvirt says one thing and QEMU another. */
const connected = (libvirt: Partial<Libvirt>): Pick<Connection, 'ask' | 'apart'> => {
  const act = <Result>(call: (asked: Libvirt) => Promise<Result>): Promise<Result> => call(libvirt as Libvirt);
  return { ask: act, apart: act };
};
const pausedForNoReason = async () => ({ state: 'paused', reason: 0 }) as const;
const qemuSays = (status: string) => async () => JSON.stringify({ return: { status, running: false } });

it.each([
  ['internal-error', { guest: 'halted', reason: { code: 'HypervisorInternalError' } }],
  ['paused', { guest: 'suspended' }],
  ['guest-panicked', { guest: 'ended', how: 'guest-panic' }],
])('QEMU is asked why a domain stands still where libvirt does not know: %s', async (status, standing) => {
  const connection = connected({ state: pausedForNoReason, command: qemuSays(status) });
  expect(await standingNow(connection, domain)).toMatchObject(standing);
});

it('a domain whose QEMU does not say why it stands still is taken for suspended', async () => {
  for (const command of [() => Promise.reject(new LibvirtError('it hangs')), async () => 'no JSON', async () => '{}'])
    expect(await standingNow(connected({ state: pausedForNoReason, command }), domain)).toEqual({ guest: 'suspended' });
});

it('QEMU is not asked where libvirt knows, and a domain that is gone has no standing', async () => {
  const state = async () => ({ state: 'paused', reason: 5 }) as const;
  expect(await standingNow(connected({ state }), domain)).toEqual({ guest: 'waiting-for-disk' });
  const gone = () => Promise.reject(new LibvirtError('no domain', libvirtErrors.noDomain));
  expect(await standingNow(connected({ state: gone }), domain)).toBeUndefined();
});
