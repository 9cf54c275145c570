// What agent and control plane say to each other. Both sides check it: neither trusts the other's bytes.

import { type Static, Type } from 'typebox';
import { ImageSpec } from './resources/image.ts';

export { ImageSpec };

const closed = { additionalProperties: false } as const;

export const Accelerator = Type.Enum(['kvm', 'tcg', 'none']);
export type Accelerator = Static<typeof Accelerator>;

/** `preparing` → `running` → `stopped` (asked for), `exited` (by itself, cleanly) or `failed`; `absent`: nothing is left. */
export const GuestState = Type.Enum(['preparing', 'running', 'stopped', 'exited', 'failed']);
export type GuestState = Static<typeof GuestState>;

export const GuestPort = Type.Object(
  {
    guestPort: Type.Integer({ minimum: 1, maximum: 65535 }),
    hostPort: Type.Integer({ minimum: 0, maximum: 65535, default: 0, description: '0: any free port' }),
    protocol: Type.Enum(['tcp', 'udp'], { default: 'tcp' }),
  },
  closed,
);
export type GuestPort = Static<typeof GuestPort>;

export const Phase = Type.Object({ name: Type.String({ maxLength: 32 }), startedAtMs: Type.Number(), durationMs: Type.Number() }, closed);
export type Phase = Static<typeof Phase>;
