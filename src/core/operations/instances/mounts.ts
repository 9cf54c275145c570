// Whether containers may see the folders of a host that they ask for: their pool must allow each by a prefix.

import { ApiError } from '../../../api/errors.ts';
import type { InstanceSpec } from '../../../api/resources/instance.ts';
import { isWithin } from '../../../api/resources/mount.ts';
import { keys } from '../../state/keys.ts';
import type { Snapshot } from '../../state/snapshot.ts';

/** Throws `InvalidRequest` naming the field. */
export function assertMounts(
  snapshot: Snapshot,
  spec: Pick<InstanceSpec, 'containers' | 'placement' | 'volumes'>,
): void {
  for (const [i, { mounts = [] }] of (spec.containers ?? []).entries()) {
    for (const [j, mount] of mounts.entries()) {
      const at = `spec.containers[${i}].mounts[${j}]`;
      if (mounts.findIndex(({ path }) => path === mount.path) < j)
        throw invalid(`${at}.path`, `two mounts of this container are at ${mount.path}`);
      const taken = kernelFolders.find((folder) => isWithin(mount.path, folder));
      if (taken !== undefined) throw invalid(`${at}.path`, `${taken} of a container belongs to the kernel`);
      const { hostPath, volume } = mount;
      if ((hostPath === undefined) === (volume === undefined))
        throw invalid(at, 'a mount has either a hostPath or a volume');
      if (hostPath !== undefined)
        assertAllowed(snapshot, hostPath, { at: `${at}.hostPath`, pool: spec.placement.pool });
      else if (!spec.volumes?.some(({ name }) => name === volume))
        throw invalid(`${at}.volume`, `the instance has no volume "${volume}"; spec.volumes must name it`);
    }
  }
}

const kernelFolders = ['/proc', '/sys', '/dev'];

/** Without a pool it might go to any host, and no pool has allowed folders there. */
function assertAllowed(
  snapshot: Snapshot,
  hostPath: string,
  { at, pool }: { readonly at: string; readonly pool: string | undefined },
): void {
  if (pool === undefined)
    throw invalid(at, 'a pool allows folders of its hosts, so spec.placement.pool must name one that does');
  const allowed = snapshot.get('pool', keys.pool(pool))?.value.spec.hostPaths ?? [];
  if (allowed.some((folder) => isWithin(hostPath, folder))) return;
  throw invalid(
    at,
    `pool "${pool}" does not allow ${hostPath}; ${allowed.length === 0 ? 'it allows no folders of its hosts' : `it allows: ${allowed.join(', ')}`}`,
  );
}

const invalid = (field: string, message: string): ApiError => new ApiError('InvalidRequest', message, { field });
