// The states of a running guest, for instances and agents.

import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;

export const Accelerator = Type.Enum(['kvm', 'tcg', 'none']);
export type Accelerator = Static<typeof Accelerator>;

/** Reason of a running guest, and the event about it: KVM could not run the guest, so it was restarted under TCG. */
export const acceleratorFallback = 'AcceleratorFallback';

/**
 * `preparing` → `running` ⇄ `suspended` (its processors are paused) → `stopped` (as requested), `exited` (by itself,
 * cleanly) or `failed`.
 */
export const GuestState = Type.Enum(['preparing', 'running', 'suspended', 'stopped', 'exited', 'failed']);
export type GuestState = Static<typeof GuestState>;

export const GuestPort = Type.Object(
  {
    guestPort: Type.Integer({ minimum: 1, maximum: 65_535 }),
    hostPort: Type.Integer({ minimum: 0, maximum: 65_535, default: 0, description: '0: any free port' }),
    protocol: Type.Enum(['tcp', 'udp'], { default: 'tcp' }),
  },
  closed,
);
export type GuestPort = Static<typeof GuestPort>;

export const PublishedPort = Type.Object(
  {
    ...GuestPort.properties,
    hostAddress: Type.Optional(Type.String({ maxLength: 64, description: 'of the host, where hostPort listens' })),
  },
  closed,
);
export type PublishedPort = Static<typeof PublishedPort>;

/** The duration of one step: pull, clone, seed, start, boot. */
export const Phase = Type.Object(
  { name: Type.String({ maxLength: 32 }), startedAtMs: Type.Number(), durationMs: Type.Number() },
  closed,
);
export type Phase = Static<typeof Phase>;
