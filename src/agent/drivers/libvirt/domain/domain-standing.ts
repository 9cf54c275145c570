// Looks how a domain stands: libvirt is asked, and QEMU itself where libvirt does not know why it stands still. Touches nothing.

import { isRecord } from '../../../../base/is-record.ts';
import { describeError } from '../../../../base/log.ts';
import { standingOf } from '../../qemu/run-states.ts';
import { type Standing, standings } from '../../guest-life/standing.ts';
import type { Connection } from '../connection.ts';
import { type DomainStanding, standingOfDomain } from './domain-states.ts';
import type { Domain, Libvirt } from '../libvirt.ts';
import { LibvirtError, libvirtErrors } from '../wire/rpc.ts';

type Known = Exclude<DomainStanding, { readonly guest: 'unexplained' }>;

/** Undefined: there is no such domain. Throws when libvirt is away. */
export async function standingNow(
  connection: Pick<Connection, 'ask' | 'apart'>,
  domain: Domain,
): Promise<Known | undefined> {
  const seen = await connection.ask((libvirt) => stateOf(libvirt, domain));
  if (seen === undefined) return undefined;
  const standing = standingOfDomain(seen);
  return standing.guest === 'unexplained' ? askQemu(connection, domain) : standing;
}

/** libvirt does not hear why QEMU stopped by itself. A QEMU that does not say is taken for one that somebody paused, as an older libvirtd forgets. */
async function askQemu(connection: Pick<Connection, 'ask' | 'apart'>, domain: Domain): Promise<Standing> {
  try {
    const said: unknown = JSON.parse(
      await connection.apart((libvirt) => libvirt.command(domain, JSON.stringify({ execute: 'query-status' }))),
    );
    const status = isRecord(said) ? said['return'] : undefined;
    if (isRecord(status) && typeof status['status'] === 'string') return standingOf(status['status']);
  } catch {
    // what libvirt says is all there is
  }
  return standings.suspended;
}

/** Undefined: there is no such domain. */
async function stateOf(libvirt: Libvirt, domain: Domain): Promise<Awaited<ReturnType<Libvirt['state']>> | undefined> {
  try {
    return await libvirt.state(domain);
  } catch (error) {
    if (error instanceof LibvirtError && error.code === libvirtErrors.noDomain) return undefined;
    throw error;
  }
}

/** In libvirt's own words. Never throws. */
export async function describeDomain(connection: Pick<Connection, 'ask'>, domain: Domain): Promise<string> {
  try {
    const seen = await connection.ask((libvirt) => stateOf(libvirt, domain));
    if (seen === undefined) return `libvirt has no domain ${domain.name} any more`;
    return `domain ${domain.name} is in the state "${seen.state}" (reason ${seen.reason})`;
  } catch (error) {
    return `libvirt does not say how domain ${domain.name} stands: ${describeError(error)}`;
  }
}
