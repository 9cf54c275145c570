// Upgrades old forms of records. A step is named by the version it starts from; no step is ever removed, so that a
// store of any age can be read. A record is upgraded when it is read, and stored in the new form when it is next
// written.

/** A parsed record of any version. */
export type OldRecord = Readonly<Record<string, unknown>>;

/**
 * From version `n` to `n + 1`, for every kind with a version. A step must not change its argument, whose parts are
 * shared.
 */
export type UpgradeStep = (record: OldRecord) => OldRecord;

/** The first is from version 1. */
export const upgradeSteps: readonly UpgradeStep[] = [];

/** The form that this program writes; 1 is the oldest. */
export const schemaVersion = 1 + upgradeSteps.length;

/**
 * What a server must know to use a store that this program has used. It is ahead of `schemaVersion` by one since records
 * may be encrypted: a server from before that must refuse the store, and must write nothing to it.
 */
export const recordsVersion = schemaVersion + 1;

/** `record` in the newest form that `steps` produce. A record without a version is of a kind that has none. */
export function upgraded(record: OldRecord, steps: readonly UpgradeStep[] = upgradeSteps): OldRecord {
  let current = record;
  for (let version = record['schemaVersion']; typeof version === 'number' && version <= steps.length; version++) {
    const step = steps[version - 1];
    if (!step) break;
    current = { ...step(current), schemaVersion: version + 1 };
  }
  return current;
}
