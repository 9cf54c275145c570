// The images that the quickstart can boot, and what it asks of each of their guests. It builds nothing itself.

import type { GuestPort } from '../api/agent-protocol.ts';
import type { BuildableImage } from './image-build.ts';

export interface QuickstartImage {
  readonly ports: readonly GuestPort[];
  readonly userData: string;
  /** Without KVM, on a busy machine. */
  readonly bootWithinMs: number;
  /** Of which it may show no sign of life. */
  readonly silenceMsMax: number;
  /** Who logs in by ssh. Absent: there is no ssh server. */
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
    silenceMsMax: 180_000, // without KVM it is busy for a minute and more between two lines
    user: 'debian',
  },
};
