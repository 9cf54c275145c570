// Profiles: the names of preferences between hosts, and the only list of them. Their weights are in
// core/scheduler/profiles.ts, which the compiler keeps in step with this list.

import { type Static, Type } from 'typebox';

export const profileNames = ['optimize-utilization', 'distribute-load', 'best-fit', 'avoid-fragmentation'] as const;

export const ProfileName = Type.Enum([...profileNames], {
  description: 'scoring profile; default: that of the pool',
});
export type ProfileName = Static<typeof ProfileName>;
