// The name of a container image in a registry, as `docker://REGISTRY/NAME:TAG@DIGEST`, parsed strictly. Container
// engines accept much more (short names, other transports, options), none of which is ever passed on.

export interface ContainerReference {
  /** Host and optional port. */
  readonly registry: string;
  readonly name: string;
  readonly tag?: string;
  readonly digest?: string;
}

export type ReadReference =
  | { readonly ok: true; readonly reference: ContainerReference }
  | { readonly ok: false; readonly fault: string };

export const containerTransport = 'docker://';

/** Of `registry/name`, from the distribution specification. */
const nameLengthMax = 255;
const hostPattern =
  /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*(?::[1-9][0-9]{0,4})?$/;
const partPattern = /^[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*$/;
const tagPattern = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;
const digestPattern = /^sha256:[0-9a-f]{64}$/;

export function readContainerReference(source: string): ReadReference {
  const wrong = (fault: string): ReadReference => ({ ok: false, fault });
  if (!source.startsWith(containerTransport)) return wrong(`it does not begin with ${containerTransport}`);
  const rest = source.slice(containerTransport.length);
  const [named = '', digest, ...more] = rest.split('@');
  if (more.length > 0 || (digest !== undefined && !digestPattern.test(digest)))
    return wrong('what follows "@" is not a digest: sha256: and 64 hex digits');
  const slash = named.indexOf('/');
  const registry = named.slice(0, Math.max(0, slash));
  if (!hostPattern.test(registry) || !isHost(registry))
    return wrong('it names no registry; for Docker Hub write docker.io/library/NAME');
  const colon = named.indexOf(':', slash);
  const name = named.slice(slash + 1, colon < 0 ? undefined : colon);
  const tag = colon < 0 ? undefined : named.slice(colon + 1);
  if (registry.length + 1 + name.length > nameLengthMax)
    return wrong(`its name is longer than ${nameLengthMax} characters`);
  if (!name.split('/').every((part) => partPattern.test(part)))
    return wrong('its name is not a series of lower-case letters, digits and single separators between slashes');
  if (tag !== undefined && !tagPattern.test(tag)) return wrong('what follows ":" is not a tag');
  if (tag === undefined && digest === undefined)
    return wrong('it has neither a tag nor a digest; "latest" is not assumed');
  return {
    ok: true,
    reference: {
      registry,
      name,
      ...(tag === undefined ? {} : { tag }),
      ...(digest === undefined ? {} : { digest }),
    },
  };
}

/** Engines take a first part without dot and port for a Docker Hub account. */
const isHost = (registry: string): boolean =>
  registry.includes('.') || registry.includes(':') || registry === 'localhost';

/** The form for engines: by digest alone where there is one, because the tag adds nothing. */
export function engineReference({ registry, name, tag, digest }: ContainerReference): string {
  return digest === undefined ? `${registry}/${name}:${tag ?? ''}` : `${registry}/${name}@${digest}`;
}
