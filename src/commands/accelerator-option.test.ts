import { expect, it } from 'vitest';
import { AgentConfig } from '../agent/config.ts';
import { acceleratorFrom } from './accelerator-option.ts';
import { processConfig } from './process-config.ts';

const variable = (value: string) => ({ environment: { BERTH_AGENT_ACCELERATOR: value } });

it.each([
  ['nothing is said', { environment: {} }, undefined, 'auto'],
  ['the variable is empty', variable(''), undefined, 'auto'],
  ['the variable says so', variable('tcg'), undefined, 'tcg'],
  ['the flag says otherwise', variable('tcg'), 'kvm', 'kvm'],
])('the accelerator, when %s', (_, cli, flag, expected) => {
  expect(acceleratorFrom(cli, flag)).toBe(expected);
});

it('refuses an accelerator that there is not, and says where it came from', () => {
  expect(() => acceleratorFrom({ environment: {} }, 'xen')).toThrow('--accelerator cannot be "xen"');
  expect(() => acceleratorFrom(variable('KVM'), undefined)).toThrow('BERTH_AGENT_ACCELERATOR cannot be "KVM"');
});

it('the agent takes it from its variable and its flag, and refuses others by name', async () => {
  const configOf = (environment: Readonly<Record<string, string>>, flag?: string) =>
    processConfig({ environment }, AgentConfig, {
      file: undefined,
      flags: { accelerator: flag },
      defaults: { hostName: 'host-1' },
      prefix: 'BERTH_AGENT_',
    });
  expect(await configOf({})).toMatchObject({ accelerator: 'auto' });
  expect(await configOf({ BERTH_AGENT_ACCELERATOR: 'tcg' })).toMatchObject({ accelerator: 'tcg' });
  expect(await configOf({ BERTH_AGENT_ACCELERATOR: 'tcg' }, 'kvm')).toMatchObject({ accelerator: 'kvm' });
  await expect(configOf({ BERTH_AGENT_ACCELERATOR: 'xen' })).rejects.toThrow(/accelerator.*BERTH_AGENT_ACCELERATOR/);
});
