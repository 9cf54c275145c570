// What the agent reports of its host beside guests and volumes: its drivers, its images, and what is on it without an assignment.

import { unknownGuestsMax } from '../../api/agent-protocol.ts';
import type { DriverOffer, HostDriver, HostImage } from '../../api/resources/host.ts';
import { driverFacts } from '../../api/driver-facts.ts';
import { describeError } from '../../base/log.ts';
import type { Driver, Fingerprint } from '../drivers/driver.ts';
import { awaitWithin } from '../host/await-within.ts';
import { type AgentParts, callTimeoutMs } from './agent-parts.ts';

export function fingerprints(parts: AgentParts): Promise<HostDriver[]> {
  return Promise.all(parts.options.drivers.map((driver) => fingerprintOf(parts, driver)));
}

async function fingerprintOf({ options, recovery, stopping }: AgentParts, driver: Driver): Promise<HostDriver> {
  const { name } = driver;
  if (!recovery.isReady(driver)) {
    const reason = `it cannot find its guests again: ${recovery.failureOf(driver) ?? 'it is still looking'}`;
    return { name, available: false, reason: reason.slice(0, 1024) };
  }
  try {
    const { reason, version, boots, ...seen } = await awaitWithin(
      { clock: options.clock, timeoutMs: callTimeoutMs, signal: stopping, what: `looking at driver "${name}"` },
      () => driver.fingerprint(),
    );
    return {
      name,
      ...seen,
      ...(driver.suspension === undefined ? {} : { suspends: true }),
      ...(options.runs === undefined || driver.access?.openRunner === undefined ? {} : { runs: true }),
      ...offersOf(driver, { boots, receives: options.incomingFiles !== undefined }),
      ...(driver.live === undefined || options.directMoves?.listens !== true || !seen.available
        ? {}
        : { live: await driver.live.kind() }),
      ...(reason === undefined ? {} : { reason: reason.slice(0, 1024) }),
      ...(version === undefined ? {} : { version: version.slice(0, 128) }),
    };
  } catch (error) {
    return { name, available: false, reason: describeError(error).slice(0, 1024) };
  }
}

/** What the kind of driver can have at all, and this one has. */
function offersOf(
  { name, access, mounts, filesystems, migration, resize, suspension }: Driver,
  { boots = [], receives }: { readonly boots: Fingerprint['boots']; readonly receives: boolean },
): { readonly offers?: DriverOffer[] } {
  const ways = { tcp: access?.reach, http: access?.dial, exec: access?.exec, image: access?.imageHealth };
  const kinds = driverFacts.find((each) => each.name === name)?.checks ?? [];
  const checks = kinds.filter((kind) => ways[kind] !== undefined);
  const offers: DriverOffer[] = [
    ...checks,
    ...(mounts === true ? (['mounts'] as const) : []),
    ...(filesystems === true ? (['filesystems'] as const) : []),
    ...(resize === undefined ? [] : (['resize'] as const)),
    ...(suspension?.save === undefined ? [] : (['save'] as const)),
    ...boots,
    ...(migration !== undefined && receives ? (['migration'] as const) : []),
  ];
  return offers.length === 0 ? {} : { offers };
}

/** Before the first sync of a session, which volumes are unknown cannot be told. */
export async function unknownVolumes({ options, volumes }: AgentParts, synced: boolean): Promise<string[]> {
  if (!synced) return [];
  try {
    return [...(await volumes.unknown())].sort().slice(0, unknownGuestsMax);
  } catch (error) {
    options.log.warn('cannot list the volumes of this host', { error: describeError(error) });
    return [];
  }
}

export async function images({ options }: AgentParts): Promise<HostImage[]> {
  try {
    return [...((await options.listImages?.()) ?? [])].slice(0, 1024);
  } catch (error) {
    options.log.warn('cannot list the images of this host', { error: describeError(error) });
    return [];
  }
}
