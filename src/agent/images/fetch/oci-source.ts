// Where in a container registry the disk of an image is: `oci://REGISTRY/NAME:TAG@sha256:<hex>`. It reads manifests, never layers, and
// believes nothing in them: sizes, counts and digests are bounded and checked before anything is asked for.
//
//   index ─► manifest for the image's architecture ─► its one layer: the disk file itself (as oras pushes it), or a tar with it in disk/

import { createHash } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { matches } from '../../../api/parse.ts';
import { DriverError } from '../../host/driver-error.ts';
import { authorizationOf, type Credential } from '../credentials/image-credentials.ts';
import type { HttpAnswer, HttpGet } from './http-get.ts';
import type { RemoteFile } from './image-source.ts';

export interface OciLayer extends RemoteFile {
  readonly digest: string;
  /** The layer is a tar archive, packed like this, and the disk is a file in it. */
  readonly archive?: { readonly packing: 'none' | 'gzip' | 'zstd' };
}

export interface OciOptions {
  readonly get: HttpGet;
  readonly architecture: 'amd64' | 'arm64';
  readonly signal: AbortSignal;
  /** For this registry and its token service. */
  readonly credential?: Credential | undefined;
}

const manifestBytesMax = 4 * 1024 * 1024; // what registries take at most (distribution-spec, "Pushing manifests")
const tokenBytesMax = 64 * 1024;

interface Reference {
  readonly registry: string;
  readonly name: string;
  readonly tag: string;
  readonly digest: string | undefined;
}

const Sha256 = Type.String({ pattern: '^sha256:[0-9a-f]{64}$' });
const Descriptor = Type.Object({
  mediaType: Type.String({ maxLength: 256 }),
  digest: Type.String({ maxLength: 256 }),
  size: Type.Integer({ minimum: 0 }),
});
const Index = Type.Object({
  schemaVersion: Type.Literal(2),
  manifests: Type.Array(
    Type.Object({
      digest: Type.String({ maxLength: 256 }),
      platform: Type.Optional(Type.Object({ architecture: Type.String(), os: Type.String() })),
    }),
    { maxItems: 256 },
  ),
});
const Manifest = Type.Object({
  schemaVersion: Type.Literal(2),
  layers: Type.Array(Descriptor, { maxItems: 128 }),
});
type Manifest = Static<typeof Manifest>;

const indexTypes = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
];
const manifestTypes = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
];

/** Of a container's file system, by media type: how the tar is packed. Everything else is the disk itself. */
const archives: Readonly<Record<string, 'none' | 'gzip' | 'zstd'>> = {
  'application/vnd.oci.image.layer.v1.tar': 'none',
  'application/vnd.oci.image.layer.v1.tar+gzip': 'gzip',
  'application/vnd.oci.image.layer.v1.tar+zstd': 'zstd',
  'application/vnd.docker.image.rootfs.diff.tar': 'none',
  'application/vnd.docker.image.rootfs.diff.tar.gzip': 'gzip',
};

/** Throws `DriverError` `ImageUnavailable` or `ImageInvalid`; anything else is a failure on the way, worth another try. */
export async function findOciLayer(source: string, options: OciOptions): Promise<OciLayer> {
  const reference = parseReference(source);
  const registry = openRegistry(reference, options);
  const first = await registry.manifest(reference.digest ?? reference.tag, reference.digest);
  const manifest = isIndex(first.value)
    ? await inIndex(first.value, { source, registry, architecture: options.architecture })
    : asManifest(first.value, source);
  const [layer] = manifest.layers;
  if (layer === undefined || manifest.layers.length !== 1)
    throw invalid(
      source,
      `it has ${manifest.layers.length} layers where a disk image has one: it is a container image, or holds several files`,
    );
  if (!matches(Sha256, layer.digest)) throw invalid(source, 'the digest of its layer is no sha256 digest');
  const packing = archives[layer.mediaType];
  return {
    ...registry.blob(layer.digest),
    digest: layer.digest,
    ...(packing === undefined ? {} : { archive: { packing } }),
  };
}

async function inIndex(
  index: Static<typeof Index>,
  {
    source,
    registry,
    architecture,
  }: { readonly source: string; readonly registry: Registry; readonly architecture: string },
): Promise<Manifest> {
  const [only] = index.manifests;
  const fitting = index.manifests.find(
    ({ platform }) => platform?.architecture === architecture && platform.os === 'linux',
  );
  const chosen = fitting ?? (index.manifests.length === 1 && only?.platform === undefined ? only : undefined);
  if (chosen === undefined) throw invalid(source, `its index has nothing for linux/${architecture}`);
  if (!matches(Sha256, chosen.digest)) throw invalid(source, 'a digest in its index is no sha256 digest');
  return asManifest((await registry.manifest(chosen.digest, chosen.digest)).value, source);
}

function isIndex(value: unknown): value is Static<typeof Index> {
  return matches(Index, value);
}

function asManifest(value: unknown, source: string): Manifest {
  if (matches(Manifest, value)) return value;
  throw invalid(
    source,
    'its manifest is none that Berth understands (OCI image 1.x, Docker schema 2; at most 128 layers)',
  );
}

/** The grammar of the distribution specification, and a registry's address. Throws for anything else. */
export function parseReference(source: string): Reference {
  const found =
    /^oci:\/\/([a-zA-Z0-9.-]+(?::\d{1,5})?|\[[0-9a-fA-F:]+\](?::\d{1,5})?)\/([a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*)(?::(\w[\w.-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$/.exec(
      source,
    );
  const [, registry, name, tag = 'latest', digest] = found ?? [];
  if (registry === undefined || name === undefined || name.length > 255)
    throw new DriverError(
      'ImageUnavailable',
      `cannot fetch ${source.slice(0, 200)}: write it as oci://REGISTRY/NAME:TAG or oci://REGISTRY/NAME@sha256:<64 hex digits>`,
    );
  return { registry, name, tag, digest };
}

type Registry = ReturnType<typeof openRegistry>;

/** One registry during one fetch: its token is kept that long, and sent to no other server. */
function openRegistry({ registry, name }: Reference, { get, signal, credential }: OciOptions) {
  // As other clients do it: plain HTTP for registries on this machine only.
  const local = /^(localhost|127\.[\d.]+|\[::1\])(:\d+)?$/.test(registry);
  const base = `${local ? 'http' : 'https'}://${registry}/v2/${name}`;
  let authorization: string | undefined;
  let afterPublic = false;
  const headers = (): Record<string, string> => (authorization === undefined ? {} : { authorization });

  const ask = async (url: string, accept: string): Promise<HttpAnswer> => {
    const once = (): Promise<HttpAnswer> =>
      get(url, { signal, checksummed: false, afterPublic, headers: { ...headers(), accept } });
    const answer = await once();
    afterPublic ||= answer.wasPublic;
    if (answer.status !== 401 || authorization !== undefined) return answer;
    answer.close();
    const challenge = answer.header('www-authenticate') ?? '';
    if (credential !== undefined && /^basic /i.test(challenge)) authorization = authorizationOf(credential);
    else authorization = `Bearer ${await tokenFor(challenge)}`;
    return once();
  };

  const tokenFor = async (challenge: string): Promise<string> => {
    const fields = new Map(
      [...challenge.matchAll(/([a-z_]+)="([^"]{0,1000})"/gi)].map(([, key = '', value = '']) => [
        key.toLowerCase(),
        value,
      ]),
    );
    const realm = /^bearer /i.test(challenge) ? fields.get('realm') : undefined;
    if (realm === undefined || !URL.canParse(realm))
      throw unavailable(base, 'it asks for a name and password, and no credential is for it (imageCredentials)');
    const url = new URL(realm);
    if (credential !== undefined && url.protocol !== 'https:' && url.origin !== new URL(base).origin)
      throw unavailable(base, 'its token service has no https: URL, and would get a password');
    const service = fields.get('service');
    if (service !== undefined) url.searchParams.set('service', service);
    url.searchParams.set('scope', `repository:${name}:pull`);
    const answer = await get(url.href, {
      signal,
      checksummed: false,
      afterPublic,
      headers: {
        accept: 'application/json',
        ...(credential === undefined ? {} : { authorization: authorizationOf(credential) }),
      },
    });
    const text = await textOf(answer, tokenBytesMax, base);
    if (answer.status !== 200) throw failed(base, answer.status, 'for a token');
    const value = parseJson(text);
    if (matches(Type.Object({ token: Token }), value)) return value.token;
    if (matches(Type.Object({ access_token: Token }), value)) return value.access_token;
    throw unavailable(base, 'its token service answered without a token');
  };

  return {
    async manifest(reference: string, digest: string | undefined): Promise<{ readonly value: unknown }> {
      const url = `${base}/manifests/${reference}`;
      const answer = await ask(url, [...manifestTypes, ...indexTypes].join(', '));
      const text = await textOf(answer, manifestBytesMax, url);
      if (answer.status !== 200) throw failed(url, answer.status, 'for a manifest');
      const actual = `sha256:${createHash('sha256').update(text, 'latin1').digest('hex')}`;
      if (digest !== undefined && digest !== actual)
        throw new DriverError('ImageChecksumMismatch', `the manifest at ${url} has ${actual}, not ${digest}`);
      return { value: parseJson(Buffer.from(text, 'latin1').toString('utf8')) };
    },
    blob: (digest: string): RemoteFile => {
      const lent = afterPublic;
      return {
        url: `${base}/blobs/${digest}`,
        headers: headers(),
        get: (url, call) => get(url, { ...call, afterPublic: lent }),
      };
    },
  };
}

const Token = Type.String({ pattern: '^[\\x21-\\x7e]{1,16384}$' });

/** Byte for byte, as latin1. Throws for one that is too long, as soon as that is known. */
async function textOf(answer: HttpAnswer, bytesMax: number, url: string): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const piece of answer.body) {
      length += piece.length;
      if (length > bytesMax)
        throw new DriverError(
          'ImageInvalid',
          `cannot take ${url}: it is longer than the ${bytesMax} bytes that it may have`,
        );
      pieces.push(piece);
    }
  } finally {
    answer.close();
  }
  return Buffer.concat(pieces).toString('latin1');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the caller reports the missing field
  }
}

function failed(url: string, status: number, what: string): Error {
  const message = `the registry answered ${status} ${what}`;
  if (status >= 500 || status === 408 || status === 429) return new Error(message);
  return unavailable(
    url,
    `${message}; check the image's source, and that it is open to all or has a credential (imageCredentials)`,
  );
}

function unavailable(url: string, why: string): DriverError {
  return new DriverError('ImageUnavailable', `cannot fetch ${url}: ${why}`);
}

function invalid(source: string, why: string): DriverError {
  return new DriverError('ImageInvalid', `cannot take ${source}: ${why}`);
}
