// Checks the configuration of an agent, and reads the files that it names. Throws `InvalidRequest` with the field at fault.

import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { ApiError } from '../api/errors.ts';
import { nearest } from '../api/nearest.ts';
import { describeError, type Logger } from '../base/log.ts';
import { adviceOnSecretFile, certificatesAt, trustCertificates } from '../base/system.ts';
import type { AgentConfig } from './config.ts';
import type { drivers as driverRegistry } from './drivers/registry.ts';
import { parseNatSubnet, parseSubnet } from './network/subnet.ts';
import { vendorDataIn } from './vendor-data.ts';

export interface CheckedConfig {
  readonly token: string | undefined;
  /** Reads the vendor-data of guests; undefined: none is configured. */
  readonly vendorData: (() => Promise<string>) | undefined;
}

/** From now on this process trusts the authorities of `ca`. */
export async function checkedConfig(
  config: AgentConfig,
  { registry, log }: { readonly registry: typeof driverRegistry; readonly log: Logger },
): Promise<CheckedConfig> {
  checkConfig(config, registry);
  checkNetwork(config);
  const vendorData = await vendorDataOf(config);
  const token = await tokenOf(config, log);
  await trustAuthority(config);
  return { token, vendorData };
}

function checkConfig(
  { drivers, portRange, movePorts, moveAddress, token, tokenFile, devices, numaCells, capacity, zones }: AgentConfig,
  registry: typeof driverRegistry,
): void {
  for (const name of drivers) {
    if (Object.hasOwn(registry, name)) continue;
    const known = Object.keys(registry);
    const meant = nearest(name, known);
    const hint = meant === undefined ? `known: ${known.join(', ')}` : `did you mean "${meant}"?`;
    throw new ApiError('InvalidRequest', `drivers: there is no driver "${name}"; ${hint}`, { field: 'drivers' });
  }
  if (drivers.includes('zones') && zones === undefined) {
    const example = '{dataset: rpool/berth, globalNic: igb0}';
    throw new ApiError('InvalidRequest', `zones: the driver zones must know where guests go: ${example}`, {
      field: 'zones',
    });
  }
  for (const [field, { first, last }] of Object.entries({ portRange, movePorts }))
    if (first > last) throw new ApiError('InvalidRequest', `${field}: ${first} to ${last} holds no port`, { field });
  if (moveAddress !== undefined && moveAddress !== 'off' && isIP(moveAddress) === 0) {
    const message = `moveAddress: "${moveAddress}" is not an IP address; write an address of this machine, or off`;
    throw new ApiError('InvalidRequest', message, { field: 'moveAddress' });
  }
  for (const [i, { name }] of devices.entries()) {
    if (devices.findIndex((other) => other.name === name) < i)
      throw new ApiError('InvalidRequest', `devices: "${name}" is given twice`, { field: `devices[${i}].name` });
  }
  for (const stated of ['VCPU', 'MEMORY_MB']) {
    if (!numaCells || capacity?.[stated] === undefined) continue;
    throw new ApiError('InvalidRequest', `capacity: with numaCells ${stated} is what the cells have; leave one away`, {
      field: `capacity.${stated}`,
    });
  }
  if (token !== undefined && tokenFile !== undefined) {
    throw new ApiError('InvalidRequest', 'token and tokenFile are both set; leave one', { field: 'token' });
  }
}

function checkNetwork({ network, natSubnet, natDenied }: AgentConfig): void {
  if (network === 'nat' && parseNatSubnet(natSubnet) === undefined) {
    const wanted = 'an IPv4 subnet from /16 to /29, such as 10.77.0.0/16';
    throw new ApiError('InvalidRequest', `natSubnet: "${natSubnet}" is not ${wanted}`, { field: 'natSubnet' });
  }
  for (const [i, denied] of natDenied.entries()) {
    if (parseSubnet(denied.includes('/') ? denied : `${denied}/32`) !== undefined) continue;
    const message = `natDenied: "${denied}" is neither an IPv4 address nor a subnet, such as 10.0.0.0/8`;
    throw new ApiError('InvalidRequest', message, { field: `natDenied[${i}]` });
  }
}

async function tokenOf({ token, tokenFile, hostName }: AgentConfig, log: Logger): Promise<string | undefined> {
  if (tokenFile === undefined) return token;
  const advice = await adviceOnSecretFile(tokenFile);
  if (advice !== undefined) log.warn(advice, { path: tokenFile });
  try {
    return (await readFile(tokenFile, 'utf8')).trim();
  } catch (cause) {
    throw new ApiError(
      'InvalidRequest',
      `tokenFile: cannot read ${tokenFile}; "berth host token ${hostName}" prints what belongs in it`,
      { field: 'tokenFile', cause },
    );
  }
}

async function trustAuthority({ ca }: AgentConfig): Promise<void> {
  if (ca === undefined) return;
  try {
    await trustCertificates(await certificatesAt(ca));
  } catch (cause) {
    const message = `ca: cannot trust the authorities in ${ca}: ${describeError(cause)}`;
    throw new ApiError('InvalidRequest', message, { field: 'ca', cause });
  }
}

/** Read once to see that it can be. */
async function vendorDataOf({ vendorDataFile }: AgentConfig): Promise<(() => Promise<string>) | undefined> {
  if (vendorDataFile === undefined) return undefined;
  const read = vendorDataIn(vendorDataFile);
  try {
    await read();
  } catch (cause) {
    throw new ApiError('InvalidRequest', `vendorDataFile: ${describeError(cause)}`, { field: 'vendorDataFile', cause });
  }
  return read;
}
