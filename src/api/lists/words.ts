// The filter of a list, as people type it: all terms must match. `web` is a part of the name; `project=a`, `host=h1`, `image=i`,
// `subject=web-1` (of events), `state=Running` and `tier=db` are exact, `tier!=db` its opposite.

import { hostStateName } from '../resources/host-state.ts';
import type { AnyResource } from '../resources/index.ts';

interface Word {
  readonly text: string;
  /** Absent: a part of the name. */
  readonly key: string | undefined;
  readonly not: boolean;
  readonly value: string;
}

export type Words = readonly Word[];

export function parseWords(text: string): Words {
  return text
    .split(/[\s,]+/)
    .filter((word) => word !== '')
    .map((word) => {
      const [, key, not, value = ''] = /^([^=!]+)(!?)=(.*)$/.exec(word) ?? [];
      return { text: word.toLowerCase(), key, not: not === '!', value };
    });
}

export function fits(resource: AnyResource, words: Words): boolean {
  return words.every(({ text, key, not, value }) =>
    key === undefined
      ? resource.metadata.name.toLowerCase().includes(text)
      : (fieldOf(resource, key, value) === value) !== not,
  );
}

/** A key that is no field of the resource is a label. The `subject` of an event is the name or the id of the object. */
function fieldOf(resource: AnyResource, key: string, value: string): unknown {
  const { metadata, spec, status } = resource;
  const own: Readonly<Record<string, unknown>> = { ...status, ...spec };
  switch (key) {
    case 'name':
    case 'project':
      return metadata[key];
    case 'host':
    case 'image':
      return own[key] ?? metadata.labels[key];
    case 'subject':
      if (resource.kind !== 'event') return metadata.labels[key];
      return resource.spec.subject.name === value ? value : resource.spec.subject.id;
    case 'state':
      if (resource.kind === 'host') return hostStateName(resource);
      if (resource.kind === 'workload') return resource.status.conditions[0]?.reason;
      return own['phase'] ?? metadata.labels[key];
    default:
      return metadata.labels[key];
  }
}
