// The text that is edited: a file as `berth apply -f` takes it. Pure.

import { isMap, isNode, isScalar, isSeq, parseDocument, stringify } from 'yaml';
import type { AnyResource, Kind } from '../../../../src/api/resources/index.ts';

export interface Draft {
  readonly metadata: {
    readonly name?: string;
    readonly project?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly spec: Readonly<Record<string, unknown>>;
}

/** From where to where in the text. */
export interface Place {
  readonly from: number;
  readonly to: number;
}

export interface Problem extends Place {
  readonly message: string;
}

export function draftText(kind: Kind, { metadata, spec }: Pick<AnyResource, 'metadata' | 'spec'>): string {
  const { name, project, labels } = metadata;
  return stringify(
    {
      kind,
      metadata: { name, ...(project ? { project } : {}), ...(Object.keys(labels).length > 0 ? { labels } : {}) },
      spec,
    },
    { lineWidth: 0 },
  );
}

/** The draft of the text, or why it is none. Its fields are checked by the server. */
export function readDraft(text: string, kind: Kind): { readonly draft?: Draft; readonly problems: readonly Problem[] } {
  const document = parseDocument(text, { prettyErrors: false });
  const problems = document.errors.map(({ pos: [from, to], message }) => ({ from, to, message }));
  if (problems.length > 0) return { problems };
  const value: unknown = document.toJS();
  if (!isFields(value)) return { problems: [{ from: 0, to: text.length, message: 'this is not a resource' }] };
  const wrong = Object.keys(value).find((key) => !['apiVersion', 'kind', 'metadata', 'spec', 'status'].includes(key));
  if (wrong !== undefined)
    return { problems: [{ ...placeOf(text, wrong), message: `a resource has no field "${wrong}"` }] };
  if (value['kind'] !== undefined && value['kind'] !== kind)
    return { problems: [{ ...placeOf(text, 'kind'), message: `it must be of kind ${kind}` }] };
  for (const field of ['metadata', 'spec'])
    if (!isFields(value[field] ?? {}))
      return { problems: [{ ...placeOf(text, field), message: `"${field}" must have fields` }] };
  const { metadata, spec } = value as { readonly metadata?: Draft['metadata']; readonly spec?: Draft['spec'] };
  return { draft: { metadata: metadata ?? {}, spec: spec ?? {} }, problems: [] };
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Where a field of an error is: `spec.ports[0].guestPort`; where it is missing, the nearest field around it. */
export function placeOf(text: string, field: string): Place {
  let node: unknown = parseDocument(text).contents;
  let rest = field;
  let place: Place = { from: 0, to: text.indexOf('\n') < 0 ? text.length : text.indexOf('\n') };
  while (rest !== '') {
    const [whole, index] = /^\[(\d+)\]\.?/.exec(rest) ?? [];
    if (whole !== undefined && isSeq(node)) {
      node = node.items[Number(index)];
      rest = rest.slice(whole.length);
      place = rangeOf(node) ?? place;
      continue;
    }
    if (!isMap(node)) return place;
    // Keys may have dots, such as those of labels: the longest that fits.
    const pairs = node.items.flatMap(({ key, value }) => {
      const name = isScalar(key) ? String(key.value) : '';
      return name !== '' && begins(rest, name) ? [{ key, name, value }] : [];
    });
    const [pair] = pairs.toSorted((a, b) => b.name.length - a.name.length);
    if (pair === undefined) return place;
    node = pair.value;
    rest = rest.slice(pair.name.length).replace(/^\./, '');
    const value = isScalar(node) ? rangeOf(node) : undefined;
    const key = rangeOf(pair.key) ?? place;
    place = { from: key.from, to: value?.to ?? key.to };
  }
  return place;
}

function begins(path: string, key: string): boolean {
  return path.startsWith(key) && (path.length === key.length || '.['.includes(path.charAt(key.length)));
}

function rangeOf(node: unknown): Place | undefined {
  if (!isNode(node) || !node.range) return undefined;
  return { from: node.range[0], to: node.range[1] };
}
