// From the configuration of a server to what makes its spares and asks whether they are ready. What is not configured is not loaded.

import { join } from 'node:path';
import type { Clock } from '../../../base/clock.ts';
import type { Probe, Provisioner } from '../provisioner.ts';
import type { ClusterConfig, ProvisionerConfig } from './provisioner-config.ts';

export interface SpareConfig {
  readonly provisioners: Readonly<Record<string, ProvisionerConfig>>;
  readonly kubernetes: Readonly<Record<string, ClusterConfig>>;
  readonly probeAllow: readonly string[];
  readonly dataDirectory: string;
}

export interface SpareOptions {
  readonly clock: Clock;
  /** No other server uses the store. */
  readonly alone: boolean;
}

export interface SpareMeans {
  /** By name; without the built-in one. */
  readonly provisioners: ReadonlyMap<string, Provisioner>;
  readonly probe: Probe;
}

/** Throws `InvalidRequest` with the field of what is wrong in the configuration. */
export async function readSpareMeans(config: SpareConfig, { clock, alone }: SpareOptions): Promise<SpareMeans> {
  const { provisioners, kubernetes, probeAllow, dataDirectory } = config;
  if (Object.keys(provisioners).length + Object.keys(kubernetes).length > 0) {
    const { checkClusters, checkProvisioners } = await import('./check-provisioners.ts');
    await checkProvisioners(provisioners);
    await checkClusters(kubernetes);
  }
  const made = new Map<string, Provisioner>();
  for (const [name, each] of Object.entries(provisioners))
    made.set(
      name,
      await provisionerOf(each, {
        field: `provisioners.${name}`,
        directory: join(dataDirectory, 'spares'),
        clock,
        alone,
      }),
    );
  if (probeAllow.length > 0) await guardOf(probeAllow);
  return { provisioners: made, probe: laterProbe({ kubernetes, probeAllow, clock }) };
}

interface Parts extends SpareOptions {
  readonly field: string;
  readonly directory: string;
}

/** It was checked that it is of one kind. */
async function provisionerOf({ ansible, gitlab, http }: ProvisionerConfig, parts: Parts): Promise<Provisioner> {
  const { field, directory, clock, alone } = parts;
  if (ansible !== undefined) {
    const { AnsibleProvisioner } = await import('./ansible/ansible-provisioner.ts');
    return new AnsibleProvisioner(ansible, { field: `${field}.ansible`, directory, clock, alone });
  }
  if (gitlab !== undefined) {
    const { GitlabProvisioner } = await import('./gitlab/gitlab-provisioner.ts');
    return new GitlabProvisioner(gitlab, { field: `${field}.gitlab`, clock });
  }
  if (http !== undefined) {
    const { HttpProvisioner } = await import('./http/http-provisioner.ts');
    return new HttpProvisioner(http, { field: `${field}.http`, clock });
  }
  throw new Error(`${field} is of no kind`);
}

/** Loaded by the first question: users may ask without any configuration. */
function laterProbe({
  kubernetes: clusters,
  probeAllow,
  clock,
}: Pick<SpareConfig, 'kubernetes' | 'probeAllow'> & { readonly clock: Clock }): Probe {
  let probe: Promise<Probe> | undefined;
  const load = async (): Promise<Probe> => {
    const { createProbe } = await import('../probes/probe.ts');
    return createProbe({ clusters, guard: await guardOf(probeAllow), clock });
  };
  return async (...question) => (await (probe ??= load()))(...question);
}

async function guardOf(probeAllow: readonly string[]) {
  const { ProbeGuard } = await import('../probes/probe-guard.ts');
  return new ProbeGuard(probeAllow);
}
