// Whether the requested checks of a guest are valid: each attempts one thing, which its kind of guest can have.

import { isContainerImage } from '../../../api/container-image.ts';
import { driverFacts } from '../../../api/driver-facts.ts';
import { ApiError } from '../../../api/errors.ts';
import { attemptKinds, type Check, type Checks, checkNames } from '../../../api/resources/check.ts';
import type { InstanceSpec } from '../../../api/resources/instance.ts';
import type { Snapshot } from '../../state/snapshot.ts';

type Asked = Pick<InstanceSpec, 'image' | 'checks' | 'containers' | 'placement'>;

/** For a spec whose image exists. Throws `InvalidRequest` naming the field. */
export function assertChecks(snapshot: Snapshot, spec: Asked): void {
  const { checks } = spec;
  if (checks === undefined) return;
  const image = snapshot.imageByName(spec.image)?.value;
  const containers =
    image === undefined || isContainerImage(image.spec)
      ? (spec.containers?.map(({ name }) => name) ?? ['main'])
      : undefined;
  for (const name of checkNames) {
    const check = checks[name];
    if (check === undefined) continue;
    const at = `spec.checks.${name}`;
    assertOneAttempt(check, at);
    assertTimes(checks, name, at);
    assertFits(check, { at, containers, spec });
  }
}

function assertOneAttempt(check: Check, at: string): void {
  const named = attemptKinds.filter((kind) => check[kind] !== undefined);
  if (named.length === 1) return;
  throw invalid(
    named.length === 0 ? at : `${at}.${named[1]}`,
    named.length === 0
      ? `a check needs one of: ${attemptKinds.join(', ')}`
      : `a check attempts one thing, and this one names ${named.join(' and ')}`,
  );
}

/** One failure in a row that is broken off by a single success would never end a guest. */
function assertTimes(checks: Checks, name: keyof Checks, at: string): void {
  if (name !== 'readiness' && (checks[name]?.successes ?? 1) > 1)
    throw invalid(`${at}.successes`, `the ${name} check passes with its first success; leave it out`);
}

/** `containers`: of a container image; undefined: it is of a virtual machine. */
function assertFits(
  check: Check,
  {
    at,
    containers,
    spec,
  }: { readonly at: string; readonly containers: readonly string[] | undefined; readonly spec: Asked },
): void {
  if (containers === undefined && check.image !== undefined)
    throw invalid(`${at}.image`, 'the image is of a virtual machine, and only container images have a HEALTHCHECK');
  for (const kind of ['exec', 'image'] as const) {
    const container = check[kind]?.container;
    if (container === undefined) continue;
    if (containers === undefined)
      throw invalid(`${at}.${kind}.container`, 'the image is of a virtual machine, which has no containers');
    if (!containers.includes(container))
      throw invalid(`${at}.${kind}.container`, `it has no container "${container}"; it has: ${containers.join(', ')}`);
  }
  assertDriver(check, at, spec.placement.driver);
}

function assertDriver(check: Check, at: string, driver: string | undefined): void {
  const can = driverFacts.find(({ name }) => name === driver)?.checks;
  const kind = attemptKinds.find((each) => check[each] !== undefined);
  if (can === undefined || kind === undefined || can.includes(kind)) return;
  const others = can.length === 0 ? 'it has no checks' : `it can check: ${can.join(', ')}`;
  throw invalid(`${at}.${kind}`, `the driver "${driver}" cannot check its guests by ${kind}; ${others}`);
}

const invalid = (field: string, message: string): ApiError => new ApiError('InvalidRequest', message, { field });
