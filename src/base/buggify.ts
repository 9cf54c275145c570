// Buggify: places where the program may lawfully do the unusual (smaller portions, later, twice, anew), so that a simulator can have it
// done where the usual would hide a fault. In production nothing unusual is ever done; a place must never break a promise.

export const buggifyPlaces = [
  // control plane: commits
  'commit-one-plan',
  'commit-refused',
  'retry-longest',
  // control plane: following the store
  'load-small-page',
  'store-read-anew',
  'full-pass-early',
  'reconcile-late',
  'reconcile-again',
  'compact-early',
  // control plane: streams
  'watch-ends',
  'assignments-end',
  'assignment-again',
  // agent
  'session-anew',
  'heartbeat-late',
  'assignments-left',
  'report-one',
  'report-again',
  'look-late',
  'look-again',
  'ledger-twice',
] as const;
export type BuggifyPlace = (typeof buggifyPlaces)[number];

/** Whether the unusual is done here and now. */
export type Buggify = (place: BuggifyPlace) => boolean;

export const neverBuggify: Buggify = () => false;
