// The drivers of this program: the guests of each, and what it was tested against. Information for users; no decision
// depends on it.

import type { attemptKinds } from './resources/check.ts';

export interface DriverFacts {
  readonly name: string;
  /** One sentence about its guests. */
  readonly summary: string;
  /** What it was tested with. */
  readonly proven: string;
  /** Whether its guests support volumes. */
  readonly volumes: boolean;
  /** Whether its guests can be suspended. */
  readonly suspends: boolean;
  /** Whether its guests can be suspended to disk. */
  readonly saves: boolean;
  /** Whether its guests can run the program of a job. */
  readonly runs: boolean;
  /** Whether its guests can move to another host, stopped. */
  readonly migrates: boolean;
  /** Whether its guests can boot by UEFI and have a TPM, on hosts with the packages for it. */
  readonly boots: boolean;
  /** How its guests can be checked. */
  readonly checks: readonly (typeof attemptKinds)[number][];
}

/** One entry for each driver of the agent's registry; a test compares the two. */
export const driverFacts: readonly DriverFacts[] = [
  {
    name: 'qemu',
    summary: 'virtual machines, each a QEMU process of the agent',
    proven: 'conformance and faults against real QEMU',
    volumes: true,
    suspends: true,
    saves: true,
    runs: true,
    migrates: true,
    boots: true,
    checks: ['tcp', 'http', 'exec'],
  },
  {
    name: 'libvirt',
    summary: 'virtual machines, each a domain of libvirt',
    proven: 'conformance and faults against real libvirt',
    volumes: true,
    suspends: true,
    saves: false,
    runs: true,
    migrates: true,
    boots: true,
    checks: ['tcp', 'http', 'exec'],
  },
  {
    name: 'container',
    summary: 'groups of containers of a Docker-compatible engine: podman, docker',
    proven: 'conformance and faults against real podman',
    volumes: true,
    suspends: true,
    saves: false,
    runs: false,
    migrates: false,
    boots: false,
    checks: ['tcp', 'http', 'exec', 'image'],
  },
  {
    name: 'zones',
    summary: 'virtual machines, each a bhyve zone of an illumos host',
    proven: 'recorded dialogues only; not run on illumos',
    volumes: false,
    suspends: false,
    saves: false,
    runs: false,
    migrates: false,
    boots: false,
    checks: [],
  },
  {
    name: 'fake',
    summary: 'simulated guests, for tests and for trying Berth out',
    proven: 'the same conformance',
    volumes: true,
    suspends: true,
    saves: false,
    runs: true,
    migrates: true,
    boots: true,
    checks: ['tcp'],
  },
];
