// Every address of the dashboard is made here, so that pages link to each other by meaning.

import { type Kind, resourceDefinitions } from '../src/api/resources/index.ts';

/** The addresses of the router begin here. */
export const base = '/ui';

const plain = { fleet: '/', pending: '/pending', plans: '/plans', audit: '/audit', login: '/login' } as const;

export const paths = {
  ...plain,
  list: (kind: Kind): string => `/${resourceDefinitions[kind].plural}`,
  create: (kind: Kind): string => `/create/${resourceDefinitions[kind].plural}`,
  one: (kind: Kind, { name, project }: { readonly name: string; readonly project?: string }): string =>
    `/${resourceDefinitions[kind].plural}/${encodeURIComponent(name)}${project ? `?project=${encodeURIComponent(project)}` : ''}`,
  /** With the form filled in. */
  plan: (verb: string, answers: Readonly<Record<string, string | undefined>>): string =>
    `/plans?${new URLSearchParams({ verb, ...defined(answers) })}`,
} as const;

function defined(answers: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(answers).flatMap(([name, value]) => (value ? [[name, value] as const] : [])),
  );
}

const kinds = Object.values(resourceDefinitions).map(({ kind }) => kind);

/** `instances` → `instance`; undefined: there are no such resources. */
export function kindOfPlural(plural: string | undefined): Kind | undefined {
  return kinds.find((kind) => resourceDefinitions[kind].plural === plural);
}

/** `instance` → `instance`; undefined: there is no such kind. */
export function kindNamed(name: string): Kind | undefined {
  return kinds.find((kind) => kind === name);
}
