// The instance of one attempt of a job: its name and its spec. Pure.

import type { InstanceSpec } from '../../../api/resources/instance.ts';
import type { JobSpec } from '../../../api/resources/job.ts';

/** The alias that the image map gives its default label. */
const defaultLabel = 'default';
/** Its value counts towards the limits of CAPACITY_MAP, as the image's names do (queue/limits.ts). */
export const runsOnLabel = 'runs-on';
/** On the instance of an attempt: the name of its job. */
export const jobLabel = 'berth/job';

/** The name or alias of the image that a job runs on. */
export function imageWordOf({ image, label }: Pick<JobSpec, 'image' | 'label'>): string {
  return image ?? label ?? defaultLabel;
}

/** `avoidHosts`: where earlier attempts failed for a reason that was not theirs. */
export function attemptSpec(spec: JobSpec, avoidHosts: readonly string[] = []): InstanceSpec {
  const { size, cpus, memoryMiB, diskGiB, driver, script, repo, env, artifacts, priority, imageCredentials } = spec;
  return {
    image: imageWordOf(spec),
    ...(size === undefined ? {} : { size }),
    ...(cpus === undefined ? {} : { cpus }),
    ...(memoryMiB === undefined ? {} : { memoryMiB }),
    ...(diskGiB === undefined ? {} : { diskGiB }),
    ...(priority === undefined ? {} : { priority }),
    ...(imageCredentials === undefined ? {} : { imageCredentials }),
    powerState: 'running',
    restartPolicy: 'Never',
    exclusive: false,
    placement: {
      ...spec.placement,
      ...(driver === undefined ? {} : { driver }),
      ...(avoidHosts.length === 0 ? {} : { avoidHosts: [...avoidHosts] }),
    },
    ports: [],
    sshKeys: spec.sshKeys,
    userData: '',
    stopGraceMs: graceMs,
    run: {
      ...(script === undefined ? {} : { script }),
      ...(repo === undefined ? {} : { repo }),
      env,
      artifacts,
      timeLimitMs: spec.timeoutMs,
      graceMs,
      holdOnFailure: spec.holdOnFailureMs > 0,
    },
  };
}

/** Between SIGTERM and SIGKILL when a job is cancelled or its time is over, as Docker has it. */
const graceMs = 10_000;

/** `build-7x2k9-2`: the second attempt of job `build-7x2k9`. `tries`: further names, where that one is taken. */
export function attemptName(job: string, number: number, tries = 0): string {
  const ending = tries === 0 ? `-${number}` : `-${number}-${tries}`;
  return `${job.slice(0, 63 - ending.length).replace(/-+$/, '')}${ending}`;
}
