// What a run of ansible-playbook is given: inventory, variables, arguments and environment. Pure. Values that are not the operator's own
// are marked unsafe, so that Ansible takes "{{ … }}" in them for text and not for a template that it would execute.

import type { AnsibleConfig } from '../provisioner-config.ts';
import { progressPlugin, progressVariable } from './progress-plugin.ts';
import type { RunFolder } from './run-folder.ts';

export interface PlaybookTarget {
  readonly host: string;
  /** Absent: Ansible resolves the name of the host. */
  readonly address?: string;
}

/** YAML of an inventory with this host alone. */
export function inventoryOf({ host, address }: PlaybookTarget, { connection, user }: AnsibleConfig): string {
  const variables = {
    ...(address === undefined ? {} : { ansible_host: unsafe(address) }),
    ...(connection === 'local' ? { ansible_connection: text('local') } : {}),
    ...(user === undefined ? {} : { ansible_user: text(user) }),
  };
  const lines = Object.entries(variables).map(([name, value]) => `      ${name}: ${value}\n`);
  return `all:\n  hosts:\n    ${text(host)}:\n${lines.join('')}`;
}

/** A record of texts becomes a dictionary. */
export type PlainVariables = Readonly<Record<string, string | number | Readonly<Record<string, string>>>>;

export interface PlaybookVariables {
  /** The operator's: they may be templates. */
  readonly own: Readonly<Record<string, string | number | boolean>>;
  /** Of the spare, and secrets. */
  readonly others: PlainVariables;
}

/** YAML for `--extra-vars @FILE`: they win over all others. */
export function variablesOf({ own, others }: PlaybookVariables): string {
  const taken = Object.entries(own).filter(([name]) => !Object.hasOwn(others, name));
  const lines = [
    ...taken.map(([name, value]) => `${name}: ${typeof value === 'string' ? text(value) : value}`),
    ...Object.entries(others).map(([name, value]) => `${name}: ${plain(value)}`),
  ];
  return lines.length === 0 ? '{}\n' : `${lines.join('\n')}\n`;
}

export function argumentsOf(
  { playbook, inventory, privateKeyFile, vaultPasswordFile }: AnsibleConfig & { readonly playbook: string },
  { folder, host }: { readonly folder: RunFolder; readonly host: string },
): string[] {
  return [
    ...['--inventory', inventory ?? folder.at('inventory.yml'), '--limit', host],
    ...['--extra-vars', `@${folder.at('variables.yml')}`],
    ...(privateKeyFile === undefined ? [] : ['--private-key', privateKeyFile]),
    ...(vaultPasswordFile === undefined ? [] : ['--vault-password-file', vaultPasswordFile]),
    ...['--', playbook],
  ];
}

/** sun_path(7) has 108 bytes; ssh appends 30 characters of its own. */
const controlPathMax = 78;

export function environmentOf(
  { configFile, knownHostsFile }: AnsibleConfig,
  folder: RunFolder,
): Record<string, string> {
  const control = folder.at('home/cp');
  const ssh = [
    control.length <= controlPathMax ? '-o ControlMaster=auto -o ControlPersist=30s' : '-o ControlMaster=no',
    ...(knownHostsFile === undefined ? [] : [`-o UserKnownHostsFile=${knownHostsFile}`]),
  ];
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    LC_ALL: 'C.UTF-8', // ansible-playbook refuses to start without UTF-8
    HOME: folder.at('home'),
    TMPDIR: folder.at('tmp'),
    ANSIBLE_HOME: folder.at('home/.ansible'),
    ANSIBLE_LOCAL_TEMP: folder.at('tmp'),
    ANSIBLE_CONFIG: configFile ?? folder.at('ansible.cfg'),
    ANSIBLE_CALLBACK_PLUGINS: folder.at('plugins'),
    ANSIBLE_STDOUT_CALLBACK: progressPlugin,
    ANSIBLE_SSH_CONTROL_PATH_DIR: control,
    ...(configFile === undefined || knownHostsFile !== undefined ? { ANSIBLE_SSH_ARGS: ssh.join(' ') } : {}),
    ANSIBLE_NOCOLOR: '1',
    ANSIBLE_RETRY_FILES_ENABLED: 'False',
    PYTHONUNBUFFERED: '1',
    [progressVariable]: folder.at('progress'),
  };
}

/** A double-quoted scalar of YAML, which is what JSON writes; a lone surrogate is in neither. */
function text(value: string): string {
  return JSON.stringify(value.toWellFormed());
}

function plain(value: string | number | Readonly<Record<string, string>>): string {
  if (typeof value !== 'object') return typeof value === 'string' ? unsafe(value) : String(value);
  return `{${Object.entries(value)
    .map(([name, each]) => `${text(name)}: ${unsafe(each)}`)
    .join(', ')}}`;
}

function unsafe(value: string): string {
  return `!unsafe ${text(value)}`;
}
