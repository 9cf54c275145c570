// The usage of a domain, from libvirt. Changes nothing.

import type { GuestCounters } from '../../../../api/guests/guest-usage.ts';
import { isRecord } from '../../../../base/is-record.ts';
import { blockTraffic } from '../../guest-life/disk/block-traffic.ts';
import type { Domain, Libvirt } from '../libvirt.ts';
import { elementsAt, readXml } from '../wire/xml.ts';

/** Throws `LibvirtError`, also when the domain does not run. */
export async function domainUsage(libvirt: Libvirt, domain: Domain): Promise<GuestCounters> {
  const used = await libvirt.usage(domain);
  const answer: unknown = JSON.parse(await libvirt.command(domain, JSON.stringify({ execute: 'query-blockstats' })));
  const disks = blockTraffic(isRecord(answer) ? answer['return'] : undefined);
  const target = interfaceOf(await libvirt.xml(domain));
  return { ...used, ...disks, ...(target === undefined ? {} : await libvirt.traffic(domain, target)) };
}

/** The host's end of the guest's interface; undefined: it is on QEMU's user network, which has none. */
export function interfaceOf(xml: string): string | undefined {
  const [target] = elementsAt(readXml(xml), 'devices', 'interface', 'target');
  return target?.attributes['dev'];
}
