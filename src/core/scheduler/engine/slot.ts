// Slot: the index of a host in the fleet's columns. The slot of a removed host may be reused.

export type Slot = number;
