// Routes for the files of images: users upload them piece by piece, agents fetch them. The image itself is made or changed when its
// file is whole and has passed the gate, never before.

import { ApiError } from '../../../../api/errors.ts';
import { parse } from '../../../../api/parse.ts';
import { type Image, ImageSpec } from '../../../../api/resources/image.ts';
import { DottedName } from '../../../../api/resources/metadata.ts';
import { agentRoutes } from '../../../../api/routes/agent.ts';
import { imageRoutes } from '../../../../api/routes/images.ts';
import { createPlainResource, replacePlainResource } from '../../../../core/operations/plain-resource.ts';
import { keys } from '../../../../core/state/keys.ts';
import type { Decider } from '../../../decide.ts';
import type { Caller } from '../../caller.ts';
import { decideFor, permitted } from '../../on-behalf.ts';
import type { ImageContent } from '../../../images/image-content.ts';
import { bind } from '../bind.ts';
import { assertNotRemoved } from '../../../../core/operations/host.ts';
import { bytesOf } from '../bytes-of.ts';
import type { Route, RouteRequest } from '../../route.ts';

const sourcePrefix = 'berth://sha256/';

export function imageContentRoutes({
  decider,
  content,
}: {
  readonly decider: Decider;
  readonly content: ImageContent;
}): Route[] {
  return [
    bind(imageRoutes.upload, async ({ params, query, body }, request) => {
      const { checksum, totalBytes: sizeBytes, offset, format, decompress, architecture } = query;
      const name = parse(DottedName, params.name, 'name');
      const hex = /^sha256:([0-9a-f]{64})$/.exec(checksum)?.[1];
      if (hex === undefined)
        throw new ApiError('InvalidRequest', 'checksum must be sha256: and 64 hex digits', { field: 'checksum' });
      const fields = { format, decompress, ...(architecture === undefined ? {} : { architecture }) };
      const received = await content.receive({
        hex,
        totalBytes: sizeBytes,
        offset,
        bytes: bytesOf(body),
        format,
        decompress,
      });
      if (!received.complete) return { status: 202, json: received };
      const image = await putImage(decider, request, { name, hex, sizeBytes, changes: fields });
      await content.sweep(namedIn(decider));
      return { status: 200, json: { ...received, image } };
    }),
    bind(agentRoutes.imageContent, async ({ params }, { headers }) => {
      assertNotRemoved(decider.cache, params.host);
      const hex = /^[0-9a-f]{64}$/.exec(params.hex)?.[0];
      if (hex === undefined) throw new ApiError('NotFound', 'there is no such file');
      const { sizeBytes, start, bytes } = await content.read(hex, startOf(headers, hex));
      return {
        status: start === 0 ? 200 : 206,
        bytes,
        headers: {
          etag: `"${hex}"`,
          'content-length': String(sizeBytes - start),
          ...(start === 0 ? {} : { 'content-range': `bytes ${start}-${sizeBytes - 1}/${sizeBytes}` }),
        },
      };
    }),
  ];
}

interface PutImage {
  readonly name: string;
  /** Of the file, in `changes` what is known of its content. */
  readonly hex: string;
  readonly sizeBytes: number;
  readonly changes: Readonly<Record<string, unknown>>;
  /** Of an image that is made; one that is there keeps its own. */
  readonly initial?: Readonly<Record<string, unknown>>;
}

/** Makes the image of a file that is here, or changes the file of the image that is: what else was said of that stays. */
export async function putImage(
  decider: Decider,
  request: { readonly caller: Caller },
  { name, hex, sizeBytes, changes, initial = {} }: PutImage,
): Promise<Image | undefined> {
  const put = permitted(request.caller.principal, (snapshot, ctx) => {
    const entry = snapshot.get('image', keys.image(name));
    // Where else the old file is, the new one is not.
    const { mirrors: _mirrors, ...kept } = entry?.value.spec ?? initial;
    const file = { source: `${sourcePrefix}${hex}`, checksum: `sha256:${hex}`, sizeBytes };
    const spec = parse(ImageSpec, { ...kept, ...changes, ...file });
    const input = { project: '', name, labels: entry?.value.metadata.labels ?? {}, spec };
    return entry
      ? replacePlainResource(snapshot, 'image', { ...input, ifRevision: entry.revision })
      : createPlainResource(snapshot, 'image', input, ctx);
  });
  const { decision } = await decideFor(decider, request, put);
  return decider.cache.committed('image', decision.key)?.value;
}

/** Where the asked-for range begins; 0 for the whole, also when the range is of another file. */
function startOf(headers: RouteRequest['headers'], hex: string): number {
  const ifRange = headers['if-range'];
  if (ifRange !== undefined && ifRange !== `"${hex}"`) return 0;
  return Number(/^bytes=(\d{1,15})-$/.exec(headers['range'] ?? '')?.[1] ?? 0);
}

function namedIn({ cache }: Decider): ReadonlySet<string> {
  const sources = [...cache.listCommitted('image')].flatMap(({ value: { spec } }) => [
    spec.source,
    ...(spec.mirrors ?? []),
  ]);
  return new Set(
    sources.flatMap((source) => (source.startsWith(sourcePrefix) ? [source.slice(sourcePrefix.length)] : [])),
  );
}
