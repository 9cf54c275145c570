// Slot: the number of a host in the fleet's columns. Another host may get it once the first has been removed.

export type Slot = number;
