// What the steps of the quickstart share: what the user asked for, and the fleet that runs it.

import type { AcceleratorSetting } from '../../agent/drivers/accelerator-setting.ts';
import type { Session } from '../../cli/session.ts';
import type { LocalFleet } from '../local-fleet.ts';
import type { BuildableImage, BuiltFile } from '../image-build.ts';

export const drivers = ['qemu', 'libvirt', 'fake'] as const;
export const images = ['tiny', 'debian-12'] as const;

/** What the user asked for. */
export interface Plan {
  readonly driver: (typeof drivers)[number];
  readonly image: BuildableImage;
  readonly accelerator: AcceleratorSetting;
  readonly dataDirectory: string;
  readonly imageDirectory: string;
  readonly listen?: string | undefined;
  readonly once?: boolean | undefined;
  readonly reason?: string | undefined;
}

/** What a step needs. */
export interface Stage {
  readonly plan: Plan;
  /** Absent: guests are simulated. */
  readonly built: BuiltFile | undefined;
  readonly fleet: LocalFleet;
  readonly session: Session;
  readonly startedMs: number;
  readonly stopped: AbortSignal;
  /**
   * Makes this fleet the current context until it ends. False: the user chose another server, which the output must
   * mention.
   */
  readonly makeCurrent: () => Promise<boolean>;
}
