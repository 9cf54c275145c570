import { describe, expect, it } from 'vitest';
import { imageKey } from '../../../../api/resources/image.ts';
import { testImage } from '../../../testing.ts';
import { pointsOn, verdictsOn } from '../test-rule.ts';

const key = imageKey(testImage().spec);
const failed = { name: 'tiny', digest: '', sizeBytes: 0, problem: 'the server answered 404' };
const fetched = { name: 'tiny', digest: 'sha256:1', sizeBytes: 1 };

describe('image', () => {
  it('is not for hosts that could not fetch it; what they could not fetch before it was changed does not count', () => {
    expect(
      verdictsOn(
        'image',
        {
          fetched: { status: { images: [{ ...fetched, key }] } },
          unknown: {},
          failed: { status: { images: [{ ...failed, key }] } },
          before: { status: { images: [{ ...failed, key: 'another' }] } },
          other: { status: { images: [{ ...failed, name: 'debian', key }] } },
        },
        {},
      ),
    ).toEqual({
      fetched: 'fits',
      unknown: 'fits',
      failed: 'ImageUnavailable: it cannot fetch the image, and retries automatically: the server answered 404',
      before: 'fits',
      other: 'fits',
    });
  });
});

describe('image-locality', () => {
  it('gives ten points for the image as it is wanted', () => {
    expect(
      pointsOn(
        'image-locality',
        {
          here: { status: { images: [{ ...fetched, key }] } },
          older: { status: { images: [{ ...fetched, key: 'another' }] } },
          untold: { status: { images: [fetched] } },
          none: {},
        },
        {},
      ),
    ).toEqual({ here: 10, older: 0, untold: 10, none: 0 });
  });
});
