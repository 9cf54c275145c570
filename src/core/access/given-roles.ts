// Which roles a principal was given, and by what: for people who ask why they may do something, or not.

import type { GivenRole } from '../../api/routes/access.ts';
import type { BindingSubject } from '../../api/resources/binding.ts';
import type { Token } from '../../api/resources/token.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { isLogin } from './standing.ts';

/** What its owner or user limits is not taken off. */
export function givenRoles({ metadata, spec }: Token, snapshot: Snapshot): GivenRole[] {
  const { role, project, user } = spec;
  const login = user !== undefined && isLogin(spec) ? user : undefined;
  const isOurs = ({ kind, name, provider }: BindingSubject): boolean =>
    kind === 'token'
      ? name === metadata.name
      : login !== undefined &&
        provider === login.provider &&
        (kind === 'user' ? name === login.subject : login.groups.includes(name));
  const own = role === undefined ? [] : [{ role, ...(project === undefined ? {} : { project }) }];
  const bound = [...snapshot.list('binding')]
    .filter(({ value }) => value.spec.subjects.some(isOurs))
    .map(({ value: { metadata: binding, spec: given } }) => ({
      role: given.role,
      ...(given.project === undefined ? {} : { project: given.project }),
      binding: binding.name,
    }));
  return [...own, ...bound.sort((a, b) => (a.binding < b.binding ? -1 : 1))];
}
