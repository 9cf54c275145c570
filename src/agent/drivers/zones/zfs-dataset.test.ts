import { expect, it } from 'vitest';
import { parseVolumes } from './zfs-dataset.ts';

it('reads what zfs list -H -p prints of volumes and snapshots', () => {
  const volumes = parseVolumes(
    [
      'rpool/berth/image-0f\t2097152\t-\t-\tsha256:0f',
      'rpool/berth/image-0f@ready\t2097152\trpool/berth/disk-a,rpool/berth/disk-b\t-\tsha256:0f',
      'rpool/berth/image-1f@ready\t-\t-\t-\tsha256:1f', // older releases give snapshots no size
      'rpool/berth/disk-a\t4194304\t-\t1e0b\t-',
      'not a row',
    ].join('\n'),
  );
  expect([...volumes]).toEqual([
    ['rpool/berth/image-0f', { sizeBytes: 2_097_152, cloned: false, image: 'sha256:0f' }],
    ['rpool/berth/image-0f@ready', { sizeBytes: 2_097_152, cloned: true, image: 'sha256:0f' }],
    ['rpool/berth/image-1f@ready', { sizeBytes: 0, cloned: false, image: 'sha256:1f' }],
    ['rpool/berth/disk-a', { sizeBytes: 4_194_304, cloned: false, guest: '1e0b' }],
  ]);
});
