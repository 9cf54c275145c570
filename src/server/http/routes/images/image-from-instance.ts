// The route that makes an image of an instance's disk: its host copies the disk, this control plane fetches the copy, and it passes the gate
// like any other image. The instance is only read.

import { ApiError } from '../../../../api/errors.ts';
import { parse } from '../../../../api/parse.ts';
import type { ImageSpec } from '../../../../api/resources/image.ts';
import { DottedName } from '../../../../api/resources/metadata.ts';
import { imageRoutes } from '../../../../api/routes/images.ts';
import { sleep } from '../../../../base/clock.ts';
import { assertMayOn } from '../../../../core/access/may.ts';
import { keys } from '../../../../core/state/keys.ts';
import type { Decider } from '../../../decide.ts';
import type { ImageContent } from '../../../images/image-content.ts';
import type { HostLinks } from '../../agent-link/host-links.ts';
import { bind } from '../bind.ts';
import { putImage } from './image-content-routes.ts';
import { findOne } from '../find-resource.ts';
import type { Route } from '../../route.ts';

/** A copy takes minutes; who waits hears something before any program in between gives up. */
const signOfLifeMs = 20_000;

export function imageFromInstanceRoute(parts: {
  readonly decider: Decider;
  readonly links: HostLinks;
  readonly content: ImageContent;
}): Route {
  const { decider, links, content } = parts;
  const { cache, clock } = decider;
  return bind(
    imageRoutes.fromInstance,
    ({ params, query: { instance: instanceName, project } }, { caller, signal }) => {
      const name = parse(DottedName, params.name, 'name');
      const { value: instance } = findOne('instance', cache, { caller, name: instanceName, project });
      assertMayOn(cache, caller.principal, 'read-user-data', instance); // its disk has all of it
      const { host } = instance.status;
      if (host === undefined)
        throw new ApiError('Conflict', `instance "${instanceName}" has no disk: it is not placed on a host`);
      const made = async (): Promise<unknown> => {
        const answer = await links.get(host, `/guests/${instance.metadata.id}/disk`, signal);
        const totalBytes = Number(answer.headers['berth-disk-bytes']);
        if (!Number.isSafeInteger(totalBytes) || totalBytes < 1)
          throw new ApiError('HostUnreachable', `host "${host}" gave no usable answer`);
        const how = { format: 'qcow2', decompress: 'none' } as const;
        const key = `instance ${instance.metadata.id} as ${name}`;
        const { hex, digest } = await content.take({ key, totalBytes, bytes: answer.body, ...how });
        const source = cache.imageByName(instance.spec.image)?.value.spec;
        const architecture = cache.committed('host', keys.host(host))?.value.status.architecture;
        const image = await putImage(
          decider,
          { caller },
          {
            ...{ name, hex, sizeBytes: totalBytes },
            changes: { ...how, ...(architecture === undefined ? {} : { architecture }) },
            ...(source === undefined ? {} : { initial: { ...whatItStays(source), ...instance.status.boot } }),
          },
        );
        return { type: 'done', image, digest };
      };
      return { status: 200, lines: linesUntil(made(), () => sleep(clock, signOfLifeMs, signal)) };
    },
  );
}

/** What a copy has of the image that the instance was made from. */
function whatItStays({ nocloud, defaults, defaultUser }: ImageSpec): Partial<ImageSpec> {
  return { nocloud, defaults, ...(defaultUser === undefined ? {} : { defaultUser }) };
}

/** What `result` becomes, as the last line; before it one for each wait. */
async function* linesUntil(result: Promise<unknown>, wait: () => Promise<void>): AsyncGenerator<unknown, void> {
  result.catch(() => {}); // told when its turn comes, below
  for (;;) {
    const ended = await Promise.race([
      result.then(
        () => true,
        () => true,
      ),
      wait().then(() => false),
    ]);
    if (ended) break;
    yield { type: 'working' };
  }
  yield await result;
}
