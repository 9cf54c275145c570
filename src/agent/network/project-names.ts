// Which names the guests of a project know one another by: pure. Each project has a name server of its own, for two projects may have guests of one
// name, and learn nothing of each other's.

import { createHash } from 'node:crypto';
import type { NatPlace } from './address-book.ts';

export interface ProjectNames {
  /** Of its folder; the same as long as the project has guests here. */
  readonly key: string;
  /** As hosts(5) has it: NAME, and NAME.PROJECT. */
  readonly hosts: string;
  /** Of its guests, who ask it. */
  readonly addresses: readonly string[];
}

/** Guests without a project have no name for others. */
export function projectNames(guests: readonly Pick<NatPlace, 'address' | 'project' | 'name'>[]): ProjectNames[] {
  const projects = [...new Set(guests.flatMap(({ project }) => project ?? []))].sort();
  return projects.map((project) => {
    const members = guests.filter((guest) => guest.project === project);
    return {
      key: createHash('sha256').update(project).digest('hex').slice(0, 12),
      hosts: members
        .flatMap(({ address, name }) => (name === undefined ? [] : [`${address} ${name} ${name}.${project}\n`]))
        .join(''),
      addresses: members.map(({ address }) => address),
    };
  });
}

/** Where dnsmasq listens on the gateway's address: guests ask port 53, and nat-rules.ts leads them there. */
const firstPort = 10_053;

/** `remembered`: by key, as long as the server runs it keeps its port. `isFree` says whether no other program listens there. */
export async function givePorts(
  projects: readonly ProjectNames[],
  {
    remembered,
    isFree,
  }: { readonly remembered: ReadonlyMap<string, number>; readonly isFree: (port: number) => Promise<boolean> },
): Promise<(ProjectNames & { readonly port: number })[]> {
  const taken = new Set(projects.flatMap(({ key }) => remembered.get(key) ?? []));
  const given: (ProjectNames & { readonly port: number })[] = [];
  let next = firstPort;
  for (const project of projects) {
    const kept = remembered.get(project.key);
    if (kept === undefined) while (taken.has(next) || !(await isFree(next))) next++;
    const port = kept ?? next;
    taken.add(port);
    given.push({ ...project, port });
  }
  return given;
}
