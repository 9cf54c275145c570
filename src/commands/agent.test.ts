import { expect, it } from 'vitest';
import { AgentConfig } from '../agent/config.ts';
import { ApiError } from '../api/errors.ts';
import { libvirtVariables, told } from './agent-process.ts';
import { processConfig } from './process-config.ts';

const configOf = (environment: Readonly<Record<string, string>>) =>
  processConfig({ environment }, AgentConfig, {
    file: undefined,
    flags: {},
    defaults: { hostName: 'host-1' },
    prefix: 'BERTH_AGENT_',
    variables: libvirtVariables,
  });

it.each([
  ['nothing is set', {}, 'qemu:///system', 'default'],
  [
    'LIBVIRT_URI and LIBVIRT_NETWORK are set',
    { LIBVIRT_URI: 'qemu:///system?socket=/a', LIBVIRT_NETWORK: 'user' },
    'qemu:///system?socket=/a',
    'user',
  ],
  [
    "the agent's own variables are set, too: they are more particular",
    { LIBVIRT_NETWORK: 'one', BERTH_AGENT_LIBVIRT_NETWORK: 'two', LIBVIRT_URI: '' },
    'qemu:///system',
    'two',
  ],
])('which libvirt and which network, when %s', async (_, environment, libvirtUri, libvirtNetwork) => {
  expect(await configOf(environment)).toMatchObject({ libvirtUri, libvirtNetwork });
});

it('refuses a name that no network of libvirt has, and says where it came from', async () => {
  await expect(configOf({ LIBVIRT_NETWORK: 'a network' })).rejects.toThrow(/libvirtNetwork.*LIBVIRT_NETWORK/);
});

it('ends with the code of what refused it, and as a fault of its own otherwise', () => {
  const refused = new Error('host "h" belongs to another', { cause: new ApiError('Conflict', 'belongs to another') });
  expect(told(refused)).toMatchObject({ exitCode: 5, message: 'host "h" belongs to another' });
  const fault = new Error('a fault');
  expect(told(fault)).toBe(fault);
});
