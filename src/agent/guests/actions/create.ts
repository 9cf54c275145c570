// Creates the guest of an entry and starts it, or records why it cannot be created.

import type { Assignment } from '../../../api/agent-protocol.ts';
import type { Driver, GuestSpec, GuestVolume } from '../../drivers/driver.ts';
import type { PreparedRun } from '../../runner/runs.ts';
import type { Step } from '../../../base/concurrency/keyed-reconciler.ts';
import type { ReceivedFile } from '../../migration/moved-files.ts';
import type { GuestFailure, LedgerEntry } from '../../ledger/ledger.ts';
import { codeOf, driverMissing, fail, failUnlessRecorded } from '../failure.ts';
import { releaseVolumes, takeVolumes } from '../guest-volumes.ts';
import type { GuestParts } from '../parts.ts';
import { credentialsWithValues, lacksValues, withValues } from '../secret-values.ts';

export async function create(parts: GuestParts, entry: LedgerEntry): Promise<Step> {
  const { assignment } = entry;
  const { driver, image, failure } = meansOf(parts, assignment);
  if (failure !== undefined) {
    fail(parts, entry, failure);
    return 'go-on';
  }
  const disk = parts.moves.diskOf(assignment);
  if (assignment.diskIncarnation !== undefined && disk === undefined) {
    const message = 'it moved to this host, and its disk is not here any more; a new one in its place would hide that';
    fail(parts, entry, { code: 'DiskLost', message });
    return 'go-on';
  }
  if (lacksValues(assignment)) return 'rest'; // they come with the next assignments
  const volumes = takeVolumes(parts, assignment);
  if (volumes === undefined) return 'rest';
  const { instanceId, incarnation, name } = assignment;
  const { notes, log, runs } = parts;
  const abort = new AbortController();
  notes.operations.set(instanceId, { kind: 'create', incarnation, abort });
  log.info('creating a guest', { instance: instanceId, name, incarnation, driver: driver.name });
  let program: PreparedRun | undefined;
  try {
    if (assignment.run !== undefined) program = await runs.prepare(assignment, driver, abort.signal);
    await driver.create(specOf(assignment, { image, volumes, program, disk }), abort.signal);
    notes.noteGiven(instanceId, volumes);
  } catch (error) {
    if (abort.signal.aborted || parts.closing()) return 'go-on'; // the agent gave it up
    if (codeOf(error) === 'Aborted') throw error;
    failUnlessRecorded(parts, entry, driver, error);
  } finally {
    notes.operations.delete(instanceId);
    releaseVolumes(parts, assignment);
    if (program !== undefined) await program.release();
  }
  return 'go-on';
}

type Means =
  | { readonly driver: Driver; readonly image: GuestSpec['image']; readonly failure?: undefined }
  | { readonly driver?: undefined; readonly image?: undefined; readonly failure: GuestFailure };

/** The driver and the image, or why the guest cannot be created with them. */
export function meansOf({ drivers }: GuestParts, assignment: Assignment): Means {
  const driver = drivers.find(({ name }) => name === assignment.driver);
  if (driver === undefined) {
    return { failure: { code: driverMissing, message: `this host has no driver "${assignment.driver}"` } };
  }
  const { image } = assignment;
  if (image === undefined) {
    const message = `image "${assignment.imageName}" does not exist any more`;
    return { failure: { code: 'ImageUnavailable', message } };
  }
  if (assignment.volumes !== undefined && driver.volumes === undefined) {
    const message = `guests of driver "${driver.name}" cannot have volumes; leave them away, or choose another driver`;
    return { failure: { code: 'NotPossible', message } };
  }
  return { driver, image };
}

interface Given {
  readonly image: GuestSpec['image'];
  readonly volumes: readonly GuestVolume[];
  readonly program: PreparedRun | undefined;
  readonly disk?: ReceivedFile | undefined;
}

export function specOf(assignment: Assignment, { image, volumes, program, disk }: Given): GuestSpec {
  const { instanceId, incarnation, name, project, hostname, cpus, memoryMiB, diskGiB, imageName } = assignment;
  const { ports, sshKeys, userData, containers, secrets, diskIncarnation, firmware, tpm } = assignment;
  const imageCredentials = credentialsWithValues(assignment);
  return {
    instanceId,
    incarnation,
    name,
    project,
    hostname,
    cpus,
    memoryMiB,
    diskGiB,
    imageName,
    image,
    ...(firmware === undefined ? {} : { firmware }),
    ...(tpm === undefined ? {} : { tpm }),
    ports,
    sshKeys,
    userData: program?.userData ?? userData,
    ...(program === undefined ? {} : { runDisk: program.runDisk }),
    ...(containers === undefined
      ? {}
      : { containers: containers.map((each) => ({ ...each, env: withValues(each.env, secrets) })) }),
    ...(imageCredentials === undefined ? {} : { imageCredentials }),
    ...(volumes.length === 0 ? {} : { volumes }),
    ...(disk === undefined ? {} : { disk }),
    ...(diskIncarnation === undefined ? {} : { diskIncarnation }),
    ...(assignment.resized === undefined ? {} : { resized: assignment.resized }),
  };
}
