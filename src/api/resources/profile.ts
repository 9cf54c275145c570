// Profiles: the names of how hosts are preferred. The only list of them; what each weighs is core/scheduler/profiles.ts, which the
// compiler holds to this list.

import { type Static, Type } from 'typebox';

export const profileNames = ['optimize-utilization', 'distribute-load', 'best-fit', 'avoid-fragmentation'] as const;

export const ProfileName = Type.Enum([...profileNames], {
  description: 'scoring profile; default: that of the pool',
});
export type ProfileName = Static<typeof ProfileName>;
