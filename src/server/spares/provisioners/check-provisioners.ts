// Checks at the start of a server what the schema of its configuration cannot say: that each provisioner is of one kind, that its files can
// be read, and that secrets go over TLS. Each fault is `InvalidRequest` with the field.

import { ApiError } from '../../../api/errors.ts';
import { system } from '../../../base/system.ts';
import type {
  AnsibleConfig,
  ClusterConfig,
  GitlabConfig,
  HttpConfig,
  ProvisionerConfig,
} from './provisioner-config.ts';
import { checkReadable, readCaFile, readSecretFile, readTokenFile } from './secret-file.ts';

/** The provisioner that needs no configuration. */
const builtIn = 'vm';

export async function checkProvisioners(configs: Readonly<Record<string, ProvisionerConfig>>): Promise<void> {
  for (const [name, config] of Object.entries(configs)) {
    const field = `provisioners.${name}`;
    if (name === builtIn) throw invalid(field, `"${builtIn}" is built in; give this provisioner another name`);
    const kinds = Object.keys(config);
    if (kinds.length !== 1)
      throw invalid(field, `it has ${kinds.join(' and ') || 'no kind'}; set one of ansible, gitlab and http`);
    const { ansible, gitlab, http } = config;
    if (ansible !== undefined) await checkAnsible(ansible, `${field}.ansible`);
    if (gitlab !== undefined) await checkGitlab(gitlab, `${field}.gitlab`);
    if (http !== undefined) await checkHttp(http, `${field}.http`);
  }
}

export async function checkClusters(configs: Readonly<Record<string, ClusterConfig>>): Promise<void> {
  for (const [name, { url, tokenFile, caFile }] of Object.entries(configs)) {
    const field = `kubernetes.${name}`;
    checkPrivate(url, `${field}.url`);
    await readTokenFile(tokenFile, `${field}.tokenFile`);
    await readCaFile(caFile, `${field}.caFile`);
  }
}

async function checkAnsible(config: AnsibleConfig, field: string): Promise<void> {
  // Runs are found again by what /proc says.
  if (system.platform() !== 'linux') throw invalid(field, 'playbooks are run on Linux only');
  for (const name of ['playbook', 'releasePlaybook', 'configFile', 'privateKeyFile', 'knownHostsFile'] as const)
    await checkReadable(config[name], `${field}.${name}`);
  await checkReadable(config.vaultPasswordFile, `${field}.vaultPasswordFile`);
  await checkReadable(config.inventory, `${field}.inventory`, 'any');
  if (config.inventory !== undefined && config.connection === 'local')
    throw invalid(
      `${field}.connection`,
      'it is for the generated inventory; say in the file of inventory how to connect',
    );
  for (const [name, path] of Object.entries(config.secretVariables ?? {})) {
    const at = `${field}.secretVariables.${name}`;
    if (Object.hasOwn(config.variables ?? {}, name)) throw invalid(at, 'it is in variables too; remove one');
    await readSecretFile(path, at);
  }
  for (const map of ['variables', 'secretVariables'] as const)
    for (const name of Object.keys(config[map] ?? {}))
      if (/^berth_/i.test(name)) throw invalid(`${field}.${map}.${name}`, 'names with berth_ are those of the spare');
}

async function checkGitlab(config: GitlabConfig, field: string): Promise<void> {
  checkPrivate(config.url, `${field}.url`);
  await readTokenFile(config.triggerTokenFile, `${field}.triggerTokenFile`);
  // Without it the pipeline's end would not be known.
  await readTokenFile(config.apiTokenFile, `${field}.apiTokenFile`);
  await readCaFile(config.caFile, `${field}.caFile`);
  for (const name of Object.keys(config.variables ?? {}))
    if (/^BERTH_/i.test(name)) throw invalid(`${field}.variables.${name}`, 'names with BERTH_ are those of the spare');
}

/** What Node or this program sets itself. */
const ownHeaders = ['host', 'content-length', 'content-type', 'transfer-encoding', 'connection', 'idempotency-key'];

async function checkHttp(config: HttpConfig, field: string): Promise<void> {
  for (const name of ['searchUrl', 'releaseUrl'] as const)
    if (config[name]?.includes('{spare}') === false)
      throw invalid(`${field}.${name}`, 'it must have {spare}, which stands for the id of the spare');
  const secrets = Object.entries(config.secretHeaders ?? {});
  const names = [...Object.keys(config.headers ?? {}), ...Object.keys(config.secretHeaders ?? {})];
  for (const [i, name] of names.entries()) {
    const at = `${field}.${i < names.length - secrets.length ? 'headers' : 'secretHeaders'}.${name}`;
    if (ownHeaders.includes(name.toLowerCase())) throw invalid(at, 'it is set by this program');
    if (names.findIndex((other) => other.toLowerCase() === name.toLowerCase()) !== i)
      throw invalid(at, 'it is set twice; remove one');
  }
  for (const [name, path] of secrets) await readTokenFile(path, `${field}.secretHeaders.${name}`);
  await readCaFile(config.caFile, `${field}.caFile`);
  if (secrets.length === 0) return;
  for (const name of ['url', 'searchUrl', 'releaseUrl'] as const)
    if (config[name] !== undefined) checkPrivate(config[name], `${field}.${name}`);
}

/** Secrets are sent to it. */
function checkPrivate(text: string, field: string): void {
  if (!URL.canParse(text)) throw invalid(field, 'it is not a URL');
  const { protocol, hostname } = new URL(text);
  const isLocal = hostname === 'localhost' || hostname === '[::1]' || /^127\.[\d.]+$/.test(hostname);
  if (protocol !== 'https:' && !isLocal) throw invalid(field, 'a secret is sent to it: use https');
}

function invalid(field: string, why: string): ApiError {
  return new ApiError('InvalidRequest', `${field}: ${why}`, { field });
}
