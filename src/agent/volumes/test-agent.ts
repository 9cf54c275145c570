// An agent to be killed: makes one change of one volume in a folder, with the given qemu-img. Used by tests only.

import { mebibyte } from '../../base/bytes.ts';
import { system, systemClock } from '../../base/system.ts';
import { createHostVolumeFiles } from './files/host-volume-files.ts';

const [directory = '', qemuImgProgram = '', what = '', volumeId = '', from = ''] = system.arguments();
const files = createHostVolumeFiles({ directory, directoryMode: 0o700, clock: systemClock, qemuImgProgram });
if (what === 'make') await files.make({ volumeId, sizeBytes: mebibyte }, new AbortController().signal);
else if (what === 'copy')
  await files.make(
    { volumeId, sizeBytes: mebibyte, source: { volumeId: from, snapshot: 'a' } },
    new AbortController().signal,
  );
else if (what === 'grow') await files.grow(volumeId, 2 * mebibyte);
else await files.snapshot(volumeId, 'make', 'a');
