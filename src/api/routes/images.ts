// Routes for the files of images, in addition to those of every resource.

import { Type } from 'typebox';
import { ImageSpec } from '../resources/image.ts';
import { queryParameters } from './parameters.ts';
import { resourceSchemas } from './resource-schemas.ts';
import { json, needs, route } from './route.ts';

const tag = 'images';
const Image = resourceSchemas.image.resource;
const { decompress, format, architecture } = ImageSpec.properties;

/** Number of bytes received of an upload. */
export const ReceivedImage = Type.Object({
  complete: Type.Boolean(),
  receivedBytes: Type.Integer({ description: 'where the next piece begins' }),
  digest: Type.Optional(Type.String({ description: 'of the unpacked file' })),
  virtualSizeBytes: Type.Optional(Type.Integer({ description: 'the size a guest sees' })),
  image: Type.Optional(Image),
});

export const imageRoutes = {
  fromInstance: route({
    id: 'imageFromInstance',
    tag,
    method: 'POST',
    path: '/v1/images/:name/from-instance',
    access: needs('image', 'create', 'update'),
    audit: 'first',
    summary: 'Create an image from the disk of an instance that does not run; the last line has the image or the error',
    query: { instance: Type.String({ description: 'its name or id' }), project: queryParameters.project },
    answers: {
      200: {
        description: 'progress lines, and one result line',
        lines: Type.Object({
          type: Type.Enum(['working', 'done']),
          image: Type.Optional(Image),
          digest: Type.Optional(Type.String()),
        }),
      },
    },
    errors: ['NotFound', 'Conflict', 'HostUnreachable', 'PayloadTooLarge', 'StoreFull'],
  }),
  upload: route({
    id: 'uploadImage',
    tag,
    method: 'PUT',
    path: '/v1/images/:name/content',
    access: needs('image', 'create', 'update'),
    summary: 'Upload the file of an image, in pieces; the last piece creates or updates the image',
    query: {
      checksum: Type.String({ description: '`sha256:<64 hex>` of the whole file' }),
      totalBytes: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'of the whole file' }),
      offset: Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        default: 0,
        description: 'where in the file the body begins',
      }),
      format,
      decompress,
      architecture: Type.Optional(Type.Enum(architecture.enum, { description: 'of the guests' })),
    },
    body: 'bytes',
    bodyDescription:
      'each request may take a minute; `Conflict` has the offset to continue at in `details.receivedBytes`',
    answers: {
      200: json(ReceivedImage, 'the file is complete and the image exists'),
      202: json(ReceivedImage, 'more pieces are expected'),
    },
    errors: ['Conflict', 'PayloadTooLarge', 'UnsupportedMediaType', 'StoreFull'],
  }),
} as const;
