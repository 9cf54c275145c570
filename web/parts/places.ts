// The pages that one can go to, in groups.

import type { AccessResource, Verb } from '../../src/api/access.ts';
import { type Kind, resourceDefinitions } from '../../src/api/resources/index.ts';
import type { WhoAmI } from '../../src/api/routes/access.ts';
import { mayAnywhere } from '../data/may-anywhere.ts';
import { paths } from '../paths.ts';

export interface Place {
  readonly name: string;
  readonly path: string;
  /** Of what it shows. */
  readonly kind: AccessResource;
  /** One of these is needed; absent: to read it. */
  readonly verbs?: readonly Verb[];
}

const reading: readonly Verb[] = ['read', 'read-placement'];

const listOf = (kind: Kind): Place => ({ name: titleOf(kind), path: paths.list(kind), kind });

/** Exported for its test. */
export const allPlaces: readonly { readonly title: string; readonly items: readonly Place[] }[] = [
  {
    title: 'Fleet',
    items: [
      { name: 'Overview', path: paths.fleet, kind: 'host' },
      listOf('host'),
      listOf('pool'),
      listOf('inventory'),
      { name: 'Plans', path: paths.plans, kind: 'host', verbs: ['drain'] },
    ],
  },
  {
    title: 'Work',
    items: [
      listOf('instance'),
      listOf('workload'),
      listOf('warmPool'),
      listOf('job'),
      listOf('jobTemplate'),
      listOf('task'),
      listOf('spare'),
      listOf('volume'),
      listOf('group'),
      { name: 'Pending', path: paths.pending, kind: 'instance' },
    ],
  },
  { title: 'Catalogue', items: [listOf('image'), listOf('size')] },
  {
    title: 'Access',
    items: [listOf('project'), listOf('token'), listOf('role'), listOf('binding'), listOf('secret'), listOf('webhook')],
  },
  {
    title: 'History',
    items: [
      listOf('event'),
      { name: 'Audit log', path: paths.audit, kind: 'audit', verbs: ['read-audit', 'read-placement'] },
    ],
  },
];

/** `warm-pools` → `Warm pools`. */
export function titleOf(kind: Kind): string {
  const { plural } = resourceDefinitions[kind];
  return `${plural.charAt(0).toUpperCase()}${plural.slice(1)}`.replaceAll('-', ' ');
}

/** Those that this user may see. */
export function placesFor(who: WhoAmI): typeof allPlaces {
  return allPlaces
    .map(({ title, items }) => ({
      title,
      items: items.filter(({ kind, verbs = reading }) => mayAnywhere(who, kind, ...verbs)),
    }))
    .filter(({ items }) => items.length > 0);
}
