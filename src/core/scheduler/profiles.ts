// Profiles: how much each score counts. A new one is a line here and in the API's list of names; the compiler holds the two together.

import type { ProfileName } from '../../api/resources/profile.ts';

export type { ProfileName } from '../../api/resources/profile.ts';

/** How much each plugin's score counts, integers from 0 to 1000. A plugin without a weight scores nothing. */
export type Weights = Readonly<Record<string, number>>;

/** How full or empty hosts are: what a profile is about. */
const weightsByProfile: Readonly<Record<ProfileName, Weights>> = {
  'optimize-utilization': { utilization: 1 },
  'distribute-load': { idleness: 1 },
  // CPU, memory and VM-count utilisation, CPU and memory alike, the count half as much.
  'best-fit': { 'cpu-utilization': 2, 'memory-utilization': 2, 'guest-count': 1 },
  // Where GPUs are, their fragments decide; tight-fit, everywhere else.
  'avoid-fragmentation': { 'gpu-fragmentation': 1, 'tight-fit': 1 },
};

/**
 * What is asked for by name counts beside the profile, in its measure: an untolerated soft taint as much as the whole difference between
 * an empty and a full host; preferences, whose scores run from -100 to +100, twice that, as do neighbours; a
 * fetched image, of at most 10 points, a tenth.
 */
const wishes: Weights = {
  preferences: 2,
  'soft-taints': 1,
  'image-locality': 1,
  affinity: 2,
  'anti-affinity': 2,
  spread: 2,
};

function withWishes(weights: Weights): Weights {
  let sum = 0;
  for (const name in weights) if (wishes[name] === undefined) sum += weights[name] ?? 0;
  const completed: Record<string, number> = { ...weights };
  for (const name in wishes) completed[name] ??= (wishes[name] ?? 0) * Math.max(1, sum);
  return completed;
}

const completed: Readonly<Record<ProfileName, Weights>> = {
  'optimize-utilization': withWishes(weightsByProfile['optimize-utilization']),
  'distribute-load': withWishes(weightsByProfile['distribute-load']),
  'best-fit': withWishes(weightsByProfile['best-fit']),
  'avoid-fragmentation': withWishes(weightsByProfile['avoid-fragmentation']),
};

/** The weights of a profile; those given besides count instead, one by one, the later ones over the earlier. */
export function weightsOf(profile: ProfileName, ...instead: readonly (Weights | undefined)[]): Weights {
  if (instead.every((weights) => weights === undefined)) return completed[profile];
  return withWishes(Object.assign({}, weightsByProfile[profile], ...instead));
}

/** Every score that may be given a weight. */
export const scoreNames: readonly string[] = [...new Set(Object.values(completed).flatMap(Object.keys))];
