// Which images a credential is for: a registry or a URL, by host, port and whole path segments. Pure. It reads a source as strictly as those
// who fetch it: a source that two programs may read differently gets no credential.

import { crossesInClear } from '../client/plain-http.ts';

/** Where an image is, or what the places of some begin with. */
export interface ImagePlace {
  readonly protocol: 'registry' | 'https:' | 'http:';
  /** In small letters, with the port where one is written. */
  readonly host: string;
  readonly segments: readonly string[];
  /** Plain HTTP to another machine: a credential could be read on the way. */
  readonly inClear: boolean;
}

export type ReadPrefix =
  | { readonly ok: true; readonly place: ImagePlace }
  | { readonly ok: false; readonly fault: string };

export const imagePrefixLengthMax = 2048;

const registryHost = /^([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?$/;

/** `registry.example.com/team`, `https://images.example.com/private`. */
export function readImagePrefix(prefix: string): ReadPrefix {
  const wrong = (fault: string): ReadPrefix => ({ ok: false, fault });
  if (/^[a-z]+:\/\//i.test(prefix)) {
    const place = /^https?:/i.test(prefix) ? placeOfUrl(prefix) : undefined;
    if (place === undefined || prefix.includes('?'))
      return wrong(
        'a URL begins with https: or http:, and has no user name, query, fragment, or encoded slash or dot; a registry is written without oci: and docker:',
      );
    return { ok: true, place: withoutEnd(place) };
  }
  const place = placeInRegistry(prefix);
  if (place === undefined || !/[.:]|^localhost$/.test(place.host))
    return wrong('write a registry with whole path segments, such as registry.example.com/team, or a URL');
  return { ok: true, place: withoutEnd(place) };
}

/** Of the source of an image. Undefined: no credential is for it. */
export function placeOfSource(source: string): ImagePlace | undefined {
  if (/^https?:/i.test(source)) return placeOfUrl(source);
  const registry = /^(?:oci|docker):\/\/(.+)$/.exec(source)?.[1];
  if (registry === undefined) return undefined;
  const [named = ''] = registry.split('@');
  return placeInRegistry(named.replace(/:[^:/\]]*$/, (tag) => (named.includes('/') ? '' : tag)));
}

/** The one with the longest prefix; of equal ones the first. */
export function longestPrefix<Rule extends { readonly place: ImagePlace }>(
  rules: readonly Rule[],
  place: ImagePlace,
): Rule | undefined {
  let best: Rule | undefined;
  for (const rule of rules) {
    if (!isBelow(rule.place, place)) continue;
    if (best === undefined || rule.place.segments.length > best.place.segments.length) best = rule;
  }
  return best;
}

function isBelow(prefix: ImagePlace, place: ImagePlace): boolean {
  if (prefix.protocol !== place.protocol || prefix.host !== place.host) return false;
  return prefix.segments.every((segment, i) => segment === place.segments[i]);
}

function placeOfUrl(text: string): ImagePlace | undefined {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return undefined;
  if (url.username !== '' || url.password !== '' || url.hash !== '') return undefined;
  // A server may decode these into a path of another prefix.
  if (/%2f|%5c|%2e|%00/i.test(url.pathname)) return undefined;
  return {
    protocol: url.protocol,
    host: url.host,
    segments: url.pathname.slice(1).split('/'),
    inClear: crossesInClear(url.href),
  };
}

function placeInRegistry(text: string): ImagePlace | undefined {
  const [host = '', ...segments] = text.split('/');
  const name = host.toLowerCase();
  if (!registryHost.test(name) || !segments.every((part) => /^[a-z0-9._-]*$/.test(part))) return undefined;
  return { protocol: 'registry', host: name, segments, inClear: false };
}

/** A slash at the end of a prefix says nothing. */
function withoutEnd(place: ImagePlace): ImagePlace {
  return place.segments.at(-1) === '' ? { ...place, segments: place.segments.slice(0, -1) } : place;
}
