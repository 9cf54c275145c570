// Whether a request for a place is valid: the one check of instances, tasks, dry runs and questions about candidates
// and capacity, so that they all refuse the same. A requirement that no host meets now is valid: the instance may wait
// for a host that does.

import { ApiError } from '../../api/errors.ts';
import { nearest } from '../../api/nearest.ts';
import type { Labels } from '../../api/resources/metadata.ts';
import type { AskingSpec } from '../scheduler/demand.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { assertVolumes } from './volumes/attach.ts';
import { assertContainers } from './containers.ts';
import { assertHostDemand } from './host-demand.ts';
import { assertPlacementRules } from './placement-rules.ts';

interface Asked {
  readonly project: string;
  readonly labels: Labels;
  readonly spec: AskingSpec;
}

/** Throws `InvalidRequest` naming the field. */
export function assertAskable(snapshot: Snapshot, { project, labels, spec }: Asked): void {
  assertReferences(snapshot, spec);
  assertPortsDiffer(spec);
  assertContainers(snapshot, spec);
  if (spec.volumes !== undefined) assertVolumes(snapshot, { project, spec });
  assertPoolOfProject(snapshot, project, spec.placement.pool);
  assertHostDemand(snapshot, spec);
  assertPlacementRules(snapshot, { project, labels, placement: spec.placement });
}

/**
 * A project that lists pools uses no others. One of them must be named: without a pool, any host could be chosen. Asked before whether the
 * pool exists, so that the answer is the same for a pool that does not.
 */
function assertPoolOfProject(snapshot: Snapshot, project: string, pool: string | undefined): void {
  const pools = snapshot.get('project', keys.project(project))?.value.spec.pools;
  if (pools === undefined || (pool !== undefined && pools.includes(pool))) return;
  const fault =
    pool === undefined
      ? `project "${project}" may use some pools only, so one must be named`
      : `project "${project}" may not use pool "${pool}"`;
  throw new ApiError('InvalidRequest', `${fault}; "berth project show ${project}" lists those it may use`, {
    field: 'spec.placement.pool',
    details: { reason: 'PoolNotPermitted' },
  });
}

/** The image and the size must exist. */
function assertReferences(snapshot: Snapshot, spec: AskingSpec): void {
  if (spec.image !== undefined && !snapshot.imageByName(spec.image)) {
    const known = [...snapshot.list('image')].flatMap(({ value }) => [value.metadata.name, ...value.spec.aliases]);
    const next = known.length === 0 ? '; "berth image build tiny" or "berth image add" creates one' : undefined;
    throw new ApiError(
      'InvalidRequest',
      `there is no image "${spec.image}"${next ?? hint(spec.image, known, 'berth image ls')}`,
      { field: 'spec.image' },
    );
  }
  if (spec.size !== undefined && !snapshot.get('size', keys.size(spec.size))) {
    const known = [...snapshot.list('size')].map(({ value }) => value.metadata.name);
    throw new ApiError('InvalidRequest', `there is no size "${spec.size}"${hint(spec.size, known, 'berth size ls')}`, {
      field: 'spec.size',
    });
  }
}

function hint(word: string, known: readonly string[], command: string): string {
  const meant = nearest(word, known);
  return meant ? `; did you mean "${meant}"?` : `; "${command}" lists them`;
}

/** No host port may be requested twice. */
function assertPortsDiffer(spec: AskingSpec): void {
  for (const [i, port] of spec.ports.entries()) {
    const twin = spec.ports.findIndex(
      (other) => port.hostPort !== 0 && other.hostPort === port.hostPort && other.protocol === port.protocol,
    );
    if (twin >= 0 && twin < i) {
      throw new ApiError('InvalidRequest', `host port ${port.hostPort}/${port.protocol} is requested twice`, {
        field: `spec.ports[${i}].hostPort`,
      });
    }
  }
}
