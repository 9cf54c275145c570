// Mounts: folders and files of the host that the pool allows, and volumes of the instance, inside of containers.

import { type Static, Type } from 'typebox';
import { Name } from './metadata.ts';

/** Absolute, and only one way to write it: without empty parts, `.` and `..`. */
export const PlainPath = Type.String({
  pattern: '^(/(?!\\.{1,2}(/|$))[^/\\u0000]{1,255})+$',
  maxLength: 1024,
  description: 'absolute, without "..", "." and empty parts: /srv/data',
});

export const Mount = Type.Object(
  {
    hostPath: Type.Optional(
      Type.String({ ...PlainPath, description: 'a folder or a file of the host, which its pool allows' }),
    ),
    volume: Type.Optional(
      Type.String({ ...Name, description: 'a volume of the instance with format filesystem, instead of hostPath' }),
    ),
    path: Type.String({ ...PlainPath, description: 'where the container sees it' }),
    readOnly: Type.Optional(Type.Boolean({ description: 'default: false' })),
  },
  { additionalProperties: false },
);
export type Mount = Static<typeof Mount>;

export type HostMount = Omit<Mount, 'volume' | 'hostPath'> & { readonly hostPath: string };

export const mountsMax = 32;

/** Whether `path` is `folder`, or below it. Both are plain. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}
