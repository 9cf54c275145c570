// Old forms of records as the present one. A step is named by the version it comes from; none is ever taken out, so that a store of any
// age can be read. A record is upgraded when it is read, and stored in the new form when it is next written.

/** A record of any version, as it was parsed. */
export type OldRecord = Readonly<Record<string, unknown>>;

/** From version `n` to `n + 1`, for every kind that has a version. What it is given is changed nowhere: others share its parts. */
export type UpgradeStep = (record: OldRecord) => OldRecord;

/** The first is from version 1. */
export const upgradeSteps: readonly UpgradeStep[] = [];

/** The form that this program writes: 1 is the oldest. */
export const schemaVersion = 1 + upgradeSteps.length;

/** `record` in the newest form that `steps` lead to. One without a version is of no kind that has any. */
export function upgraded(record: OldRecord, steps: readonly UpgradeStep[] = upgradeSteps): OldRecord {
  let current = record;
  for (let version = record['schemaVersion']; typeof version === 'number' && version <= steps.length; version++) {
    const step = steps[version - 1];
    if (!step) break;
    current = { ...step(current), schemaVersion: version + 1 };
  }
  return current;
}
