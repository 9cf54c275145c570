import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { AnsibleConfig } from '../provisioner-config.ts';
import { argumentsOf, environmentOf, inventoryOf, variablesOf } from './playbook-input.ts';
import { RunFolder } from './run-folder.ts';

const config: AnsibleConfig = {
  playbook: '/etc/berth/site.yml',
  connection: 'ssh',
  timeoutMs: 1_000,
  concurrency: 10,
  stopMs: 100,
};
const folder = new RunFolder('/var/lib/berth/server/spares/spare_1');
const read = (text: string): unknown => parse(text, { logLevel: 'silent' });

describe('the inventory', () => {
  it('has the host alone', () => {
    expect(read(inventoryOf({ host: 'rack1' }, config))).toEqual({ all: { hosts: { rack1: null } } });
  });

  it('says how to connect', () => {
    const text = inventoryOf({ host: 'rack1', address: '10.0.0.1' }, { ...config, connection: 'local', user: 'ops' });
    const variables = { ansible_host: '10.0.0.1', ansible_connection: 'local', ansible_user: 'ops' };
    expect(read(text)).toEqual({ all: { hosts: { rack1: variables } } });
  });
});

describe('the variables', () => {
  it('of the spare win, and are no templates', () => {
    const text = variablesOf({
      own: { domain: '{{ zone }}', size: 2, quick: true, berth_host: 'x' },
      others: { berth_host: "{{ lookup('pipe', 'id') }}", berth_cpus: 4, password: 'a: "b"\n- c' },
    });
    expect(text.split('\n')).toEqual([
      'domain: "{{ zone }}"',
      'size: 2',
      'quick: true',
      `berth_host: !unsafe "{{ lookup('pipe', 'id') }}"`,
      'berth_cpus: 4',
      'password: !unsafe "a: \\"b\\"\\n- c"',
      '',
    ]);
    expect(read(text)).toMatchObject({ password: 'a: "b"\n- c' });
  });

  it('may be none', () => {
    expect(read(variablesOf({ own: {}, others: {} }))).toEqual({});
  });
});

it('gives no option a value that could be another', () => {
  const words = argumentsOf({ ...config, privateKeyFile: '/k' }, { folder, host: 'rack1' });
  expect(words.slice(-3)).toEqual(['/k', '--', '/etc/berth/site.yml']);
  expect(words).toContain('--limit');
});

describe('the environment', () => {
  it('is private', () => {
    const environment = environmentOf(config, folder);
    expect(environment).toMatchObject({
      HOME: `${folder.path}/home`,
      TMPDIR: `${folder.path}/tmp`,
      ANSIBLE_CONFIG: `${folder.path}/ansible.cfg`,
      ANSIBLE_SSH_ARGS: '-o ControlMaster=auto -o ControlPersist=30s',
    });
  });

  it('shares no connections where the path of their socket would be too long', () => {
    const long = new RunFolder(`/var/${'x'.repeat(80)}`);
    expect(environmentOf(config, long)['ANSIBLE_SSH_ARGS']).toBe('-o ControlMaster=no');
  });

  it("leaves SSH to the operator's configuration", () => {
    const environment = environmentOf({ ...config, configFile: '/etc/ansible/ansible.cfg' }, folder);
    expect(environment['ANSIBLE_CONFIG']).toBe('/etc/ansible/ansible.cfg');
    expect(environment).not.toHaveProperty('ANSIBLE_SSH_ARGS');
  });
});
