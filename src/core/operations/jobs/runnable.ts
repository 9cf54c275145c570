// Whether an instance can run a program: it needs one, user-data of its own, and an image that takes user-data.

import { isContainerImage } from '../../../api/container-image.ts';
import { ApiError } from '../../../api/errors.ts';
import type { InstanceSpec } from '../../../api/resources/instance.ts';
import type { Snapshot } from '../../state/snapshot.ts';

/** Throws `InvalidRequest` naming the field. */
export function assertRun(snapshot: Snapshot, { image: word, run, userData }: InstanceSpec): void {
  if (run === undefined) return;
  if (run.warm !== 'waiting' && run.script === undefined && run.repo === undefined)
    throw invalid('spec.run.script', 'a run needs a script, or a repository with one');
  if (userData !== '')
    throw invalid(
      'spec.userData',
      'the guest of a run gets its user-data from Berth; remove spec.userData or spec.run',
    );
  const image = snapshot.imageByName(word)?.value;
  if (!image) return;
  const { name } = image.metadata;
  if (isContainerImage(image.spec))
    throw invalid(
      'spec.image',
      `image "${name}" is of containers, and programs run in virtual machines; choose an image of a virtual machine`,
    );
  if (!image.spec.nocloud)
    throw invalid(
      'spec.image',
      `image "${name}" takes no cloud-init data (nocloud: false), so it cannot be given a program`,
    );
}

function invalid(field: string, message: string): ApiError {
  return new ApiError('InvalidRequest', message, { field });
}
