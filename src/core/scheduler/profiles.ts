// Profiles: the weight of each score. A new profile is a line here and in the API's list of names; the compiler keeps
// the two in step.

import type { ProfileName } from '../../api/resources/profile.ts';

export type { ProfileName } from '../../api/resources/profile.ts';

/** The weight of each plugin's score, an integer from 0 to 1000. A plugin without a weight scores nothing. */
export type Weights = Readonly<Record<string, number>>;

/** How full or empty hosts should be: the subject of a profile. */
const weightsByProfile: Readonly<Record<ProfileName, Weights>> = {
  'optimize-utilization': { utilization: 1 },
  'distribute-load': { idleness: 1 },
  // Utilisation of CPU, memory and the instance limit; the limit weighs half.
  'best-fit': { 'cpu-utilization': 2, 'memory-utilization': 2, 'guest-count': 1 },
  // On hosts with GPUs their fragmentation decides; elsewhere tight-fit does.
  'avoid-fragmentation': { 'gpu-fragmentation': 1, 'tight-fit': 1 },
};

/**
 * Explicit wishes are added to every profile, on its scale: an untolerated soft taint weighs as much as the difference
 * between an empty and a full host; preferences, which range from -100 to +100, and neighbours twice that; a fetched
 * image, of at most 10 points, a tenth. Hosts to avoid weigh ten times as much, more than all others together.
 */
const wishes: Weights = {
  preferences: 2,
  'soft-taints': 1,
  'avoid-hosts': 10,
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

/** The weights of a profile; later arguments override single weights of earlier ones. */
export function weightsOf(profile: ProfileName, ...instead: readonly (Weights | undefined)[]): Weights {
  if (instead.every((weights) => weights === undefined)) return completed[profile];
  return withWishes(Object.assign({}, weightsByProfile[profile], ...instead));
}

/** Every score that can be given a weight. */
export const scoreNames: readonly string[] = [...new Set(Object.values(completed).flatMap(Object.keys))];
