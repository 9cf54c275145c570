// What a moving instance needs of its target: its own room and that of its volumes, and a host whose agent and driver can take it over.

import type { LiveKind } from '../../api/resources/host.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Volume } from '../../api/resources/volume.ts';
import { type Request, requestOf, withKeys } from '../scheduler/request.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { heldGiB, volumesOf } from '../state/volumes.ts';

export function migrationRequest(
  snapshot: Snapshot,
  instance: Instance,
  { driver, like }: { readonly driver: string; readonly like?: LiveKind | undefined },
): Request {
  const request = requestOf(snapshot, instance);
  const gib = volumesThatMove(snapshot, instance).reduce((sum, { value }) => sum + heldGiB(value.spec), 0);
  const { volumesOn: _here, ...terms } = request.terms;
  const { unplacedVolumes: _none, ...rest } = request;
  const amounts =
    gib === 0 ? request.amounts : { ...request.amounts, DISK_GB: (request.amounts['DISK_GB'] ?? 0) + gib };
  return {
    ...rest,
    ...withKeys({
      ...rest,
      amounts,
      terms: {
        ...terms,
        driver,
        needs: [...(terms.needs ?? []), 'migration'],
        ...(like === undefined ? {} : { like }),
      },
    }),
    assigned: request.assigned,
  };
}

/** Its volumes on the host where it is. */
export function volumesThatMove(snapshot: Snapshot, { metadata, spec, status }: Instance): Entry<Volume>[] {
  return volumesOf(snapshot, { project: metadata.project, volumes: spec.volumes }).filter(
    ({ value }) => value.status.host === status.host && value.status.attachedTo?.id === metadata.id,
  );
}
