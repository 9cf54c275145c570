// Parts of a CPU in the ledger: multiples of 1/1024 VCPU, which floating point adds and subtracts exactly, in any order. Whole CPUs stay
// whole numbers (docs/decisions/0034-cpu-shares-are-binary-fractions.md).

const unitsPerCpu = 1024;

/** What a claim for this number of CPUs holds: the nearest multiple of the unit, and at least one. */
export function cpuShareOf(cpus: number): number {
  if (Number.isInteger(cpus)) return cpus;
  return Math.max(1, Math.round(cpus * unitsPerCpu)) / unitsPerCpu;
}
