// offers: an instance with health checks, mounts, UEFI firmware or a TPM goes to a host whose agent and driver have them. The agent says so
// itself: one of an earlier version does not know such assignments, and would take none at all.

import { type BootOffer, bootOffers, type DriverOffer, type LiveKind } from '../../../../api/resources/host.ts';
import { driverFacts } from '../../../../api/driver-facts.ts';
import { containerDriver } from '../../../../api/container-image.ts';
import { type HostPlugin, refuse } from '../../framework.ts';
import { usualDriver, wantedDriver } from '../../wanted-driver.ts';

export const offers: HostPlugin = {
  name: 'offers',
  summary: 'the host has an agent and a driver that have what the instance needs: checks, mounts, firmware, a TPM',
  dependsOn: 'host',
  prepare({ terms }, { hosts }) {
    const { needs, like } = terms;
    if (needs === undefined) return null;
    return {
      filter(slot) {
        const host = hosts[slot];
        if (!host) return null;
        const { drivers } = host.status;
        const wanted = wantedDriver(terms) ?? usualDriver(drivers);
        const driver = drivers.find(({ name }) => name === wanted);
        const missing = driver && needs.find((each) => driver.offers?.includes(each) !== true);
        if (driver !== undefined && like !== undefined && missing === undefined) return differenceOf(driver.live, like);
        if (driver === undefined || missing === undefined) return null;
        return refuse('OffersMissing', missingText(driver.name, missing));
      },
    };
  },
};

/** QEMU itself notices some differences, and others only when the guest fails. */
function differenceOf(
  live: LiveKind | undefined,
  { machine, cpu, network }: LiveKind,
): ReturnType<typeof refuse> | null {
  if (live === undefined)
    return refuse(
      'LiveUnable',
      'guests cannot move there while they run: other hosts cannot connect to it, or its driver cannot',
    );
  if (live.network !== network)
    return refuse('OtherNetwork', `its guests are on the network ${live.network}, not ${network}`);
  if (live.machine !== machine) return refuse('OtherMachine', `its machines are ${live.machine}, not ${machine}`);
  if (live.cpu !== cpu) return refuse('OtherCpu', `its guests see the processor ${live.cpu}, not ${cpu}`);
  return null;
}

function missingText(driver: string, missing: DriverOffer): string {
  const what = words[missing] ?? `${missing} checks`;
  if (!mayOffer(driver, missing)) return `its driver ${driver} has no ${what}`;
  if (isBootOffer(missing)) return `its driver ${driver} has no ${what}: install ${packages[missing]} on the host`;
  const remedy = missing === 'filesystems' ? 'update it, and run it as root' : 'update the agent';
  return `its agent does not know ${what} of its driver ${driver}; ${remedy}`;
}

/** Whether guests of this driver can have it at all. */
function mayOffer(driver: string, offer: DriverOffer): boolean {
  if (offer === 'mounts' || offer === 'filesystems') return driver === containerDriver;
  const facts = driverFacts.find(({ name }) => name === driver);
  if (isBootOffer(offer)) return facts?.boots === true;
  if (offer === 'migration' || offer === 'resize' || offer === 'save') return facts?.migrates === true;
  return facts?.checks.includes(offer) === true;
}

const isBootOffer = (offer: DriverOffer): offer is BootOffer => bootOffers.some((each) => each === offer);

const words: Readonly<Partial<Record<DriverOffer, string>>> = {
  mounts: 'mounts of containers',
  migration: 'moves',
  resize: 'resizes',
  filesystems: 'volumes for containers',
  save: 'suspension to disk',
  uefi: 'UEFI firmware',
  'uefi-secure-boot': 'UEFI firmware for secure boot',
  tpm: 'virtual TPM',
};

/** Also what an agent of an earlier version lacks. */
const packages: Readonly<Record<BootOffer, string>> = {
  uefi: 'the package ovmf',
  'uefi-secure-boot': 'the package ovmf',
  tpm: 'the packages swtpm and swtpm-tools',
};
