// The credentials for images that a guest brings from its project.

import type { GuestCredentials } from '../images/credentials/image-credentials.ts';
import type { GuestSpec } from './driver.ts';

export function ownCredentials({ project, imageCredentials }: GuestSpec): GuestCredentials | undefined {
  if (project === undefined || imageCredentials === undefined) return undefined;
  return { project, credentials: imageCredentials };
}
