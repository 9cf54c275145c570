// Buggify: places where the program may legally behave in unusual ways (smaller portions, later, twice, again), so that
// a simulator can trigger them where normal behaviour would hide a fault. Never active in production; a place must
// never break a guarantee.

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

/** Whether to behave unusually at this place now. */
export type Buggify = (place: BuggifyPlace) => boolean;

export const neverBuggify: Buggify = () => false;
