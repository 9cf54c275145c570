// ByGroup: waiting instances by the group whose change could help them: a member that arrives, or one that leaves.
// Found by a tag of the group, so that placing an instance costs nothing for those that wait for other groups.

import { equalJson } from '../../base/equal-json.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { type Belonging, belongingOf, groupTag, isMember, placeOf, tagOf } from '../scheduler/neighbours/belonging.ts';
import type { GroupTerm } from '../scheduler/neighbours/group-terms.ts';
import { TagIndex } from '../scheduler/neighbours/tag-index.ts';

interface Asking {
  readonly request: { readonly groups: readonly GroupTerm[] };
}

export class ByGroup<T extends Asking> {
  readonly #byTag = new TagIndex<Set<T>>();
  #count = 0;

  add(one: T): void {
    for (const term of one.request.groups) {
      const tag = term.kind === 'missingGroup' ? undefined : tagOf(term.members);
      if (!tag || term.kind === 'missingGroup') continue;
      this.#byTag.at(term.members.project, tag.key, tag.value, () => new Set<T>()).add(one);
      this.#count += 1;
    }
  }

  delete(one: T): void {
    for (const term of one.request.groups) {
      const tag = term.kind === 'missingGroup' ? undefined : tagOf(term.members);
      if (!tag || term.kind === 'missingGroup') continue;
      const all = this.#byTag.get(term.members.project, tag.key, tag.value);
      all?.delete(one);
      if (all?.size === 0) this.#byTag.delete(term.members.project, tag.key, tag.value);
      this.#count -= 1;
    }
  }

  /** The entries that this change of an instance may help. */
  helpedBy(before: Instance | null, after: Instance | null): readonly T[] {
    if (this.#count === 0) return [];
    const placeBefore = before ? placeOf(before) : undefined;
    const placeAfter = after ? placeOf(after) : undefined;
    if (placeBefore === placeAfter && equalJson(before?.metadata.labels, after?.metadata.labels)) return [];
    const helped = new Set<T>();
    if (before && placeBefore !== undefined) this.#look(belongingOf(before), 'went', helped);
    if (after && placeAfter !== undefined) this.#look(belongingOf(after), 'came', helped);
    return [...helped];
  }

  #look(belonging: Belonging, what: 'came' | 'went', helped: Set<T>): void {
    const look = (key: string, value: string): void => {
      for (const one of this.#byTag.get(belonging.project, key, value) ?? [])
        if (one.request.groups.some((term) => helps(term, belonging, what))) helped.add(one);
    };
    for (const key in belonging.labels) look(key, belonging.labels[key] ?? '');
    if (belonging.placementGroup !== undefined) look(groupTag, belonging.placementGroup);
  }
}

function helps(term: GroupTerm, belonging: Belonging, what: 'came' | 'went'): boolean {
  switch (term.kind) {
    case 'missingGroup':
      return false;
    case 'affinity':
      return what === 'came' && isMember(term.members, belonging);
    case 'antiAffinity':
    case 'limit':
      return what === 'went' && isMember(term.members, belonging);
    case 'spread':
      return isMember(term.members, belonging); // one more elsewhere raises the least, one less here lowers the skew
  }
}
