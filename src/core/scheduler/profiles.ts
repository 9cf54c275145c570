// Profiles: how much each score counts. A new one is a line here and in the API's list of names.

/** How much each plugin's score counts, integers from 0 to 1000. A plugin without a weight scores nothing. */
export type Weights = Readonly<Record<string, number>>;

export const profileNames = ['optimize-utilization', 'distribute-load'] as const;
export type ProfileName = (typeof profileNames)[number];

const weightsByProfile: Readonly<Record<ProfileName, Weights>> = {
  'optimize-utilization': { utilization: 1 },
  'distribute-load': { idleness: 1 },
};

export function weightsOf(profile: ProfileName): Weights {
  return weightsByProfile[profile];
}
