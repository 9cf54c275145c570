// The images that the quickstart can boot, and the limits for each of their guests. It builds nothing itself.

import type { GuestPort } from '../../api/agent-protocol.ts';
import type { BuildableImage } from '../image-build.ts';

export interface QuickstartImage {
  readonly ports: readonly GuestPort[];
  readonly userData: string;
  /** Without KVM, on a busy machine. */
  readonly bootWithinMs: number;
  /** The longest time without a sign of life. */
  readonly silenceMsMax: number;
  /** The login for ssh. Absent: there is no ssh server. */
  readonly user?: string;
}

export const quickstartImages: Readonly<Record<BuildableImage, QuickstartImage>> = {
  // It serves /var/www on port 80.
  tiny: {
    ports: [{ guestPort: 80, hostPort: 0, protocol: 'tcp' }],
    userData: `#!/bin/sh
echo "Hello from user-data, on $(hostname)."
echo "Hello from $(hostname), a guest that Berth has placed." > /var/www/index.html
`,
    bootWithinMs: 180_000,
    silenceMsMax: 60_000,
  },
  'debian-12': {
    ports: [],
    userData: `#!/bin/sh
echo "Hello from user-data, on $(hostname)."
`,
    bootWithinMs: 900_000,
    silenceMsMax: 180_000, // without KVM more than a minute can pass between two lines
    user: 'debian',
  },
};
