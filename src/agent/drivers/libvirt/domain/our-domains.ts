// Finds the domains of one instance in libvirt. A domain is ours only if it carries the mark of this instance and of this agent's directory; every
// other domain is left alone, whatever its name.

import { DriverError } from '../../../host/driver-error.ts';
import type { Machine } from '../../guest-life/hypervisor.ts';
import type { Connection } from '../connection.ts';
import { type DomainMark, domainName, readMark } from './domain-xml.ts';
import type { Domain } from '../libvirt.ts';

interface FoundDomain {
  readonly domain: Domain;
  /** Undefined: Berth did not make this domain. */
  readonly mark: DomainMark | undefined;
}

/** The domains that have the name or the uuid of an instance's domain, each once, whether or not Berth made them. */
export function domainsOf(
  connection: Connection,
  { instanceId, uuid }: { readonly instanceId: string; readonly uuid: string | undefined },
): Promise<readonly FoundDomain[]> {
  return connection.ask(async (libvirt) => {
    const byName = await libvirt.byName(domainName(instanceId));
    const byUuid = uuid === undefined || byName?.uuid === uuid ? undefined : await libvirt.byUuid(uuid);
    const found = [byName, byUuid].filter((domain) => domain !== undefined);
    return Promise.all(found.map(async (domain) => ({ domain, mark: readMark(await libvirt.xml(domain)) })));
  });
}

/** Compares the directory too, because two agents may share one libvirt. */
export function isOurs(
  mark: DomainMark | undefined,
  { instanceId, directory }: { readonly instanceId: string; readonly directory: string },
): boolean {
  return mark?.instanceId === instanceId && mark.directory === directory;
}

/**
 * Undefines the domain of an earlier start of this machine, so that what libvirt remembers of a run belongs to the next run. Throws
 * `HypervisorFailed`, with nothing changed, when a foreign domain has the name or the uuid.
 */
export async function makeRoom(
  connection: Connection,
  { record, directory }: Pick<Machine, 'record' | 'directory'>,
): Promise<void> {
  const { instanceId, uuid } = record;
  for (const { domain, mark } of await domainsOf(connection, { instanceId, uuid })) {
    if (!isOurs(mark, { instanceId, directory })) throw foreign(instanceId, domain, mark);
    if (domain.id >= 0) {
      throw new DriverError('HypervisorFailed', `cannot start ${instanceId}: domain ${domain.name} runs already`);
    }
    await connection.ask((libvirt) => libvirt.undefine(domain));
  }
}

function foreign(instanceId: string, { name, uuid }: Domain, mark: DomainMark | undefined): DriverError {
  const whose =
    mark === undefined
      ? 'which Berth did not make'
      : `of the Berth that keeps its guests in ${mark.directory.replace(/\/[^/]*$/, '')}`;
  return new DriverError(
    'HypervisorFailed',
    `cannot start ${instanceId}: libvirt has a domain ${name} (${uuid}), ${whose}; it is left alone: rename it ("virsh domrename") or remove it ("virsh undefine"), and try again`,
  );
}

/** A new definition has no reason for not running. If there is a reason, the domain ran since, and ended by itself. */
export async function hasRunSinceDefined(connection: Connection, domain: Domain): Promise<boolean> {
  const { reason } = await connection.ask((libvirt) => libvirt.state(domain));
  return reason === shutdownReason || reason === crashedReason;
}
const shutdownReason = 1;
const crashedReason = 3;
