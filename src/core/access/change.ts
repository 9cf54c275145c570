// May this principal change a resource from what it was to what it shall be? One question for creates, replaces and deletes of all
// kinds: about the resource before, about the resource after, and about what it uses in addition.

import type { Verb } from '../../api/access.ts';
import type { AnyResource, Kind } from '../../api/resources/index.ts';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { equalJson } from '../../base/equal-json.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { assertMay, assertMayOn } from './may.ts';
import type { Principal } from './principal.ts';
import { about, projectOf } from './question.ts';
import { rightsOf } from './rights-of.ts';
import { newUses, usesOf } from './uses.ts';
import { assertGivesWithinOwn } from './within-own.ts';

/** Verbs of which a caller needs one to replace a resource of the kind; which, its new state says. */
function replaceVerbs(kind: Kind): readonly Verb[] {
  return kind === 'instance' ? ['update', 'power'] : kind === 'host' ? ['update', 'drain'] : ['update'];
}

/** Throws `Forbidden` unless some change of it is permitted. */
export function assertMayReplace(snapshot: Snapshot, principal: Principal, before: AnyResource): void {
  const rights = rightsOf(principal, snapshot);
  const [first = 'update', ...others] = replaceVerbs(before.kind);
  if (!others.some((verb) => rights.allows(about(verb, before)))) assertMayOn(snapshot, principal, first, before);
}

/** `before` undefined: it is created; `after` null: it is deleted. Throws `Forbidden`, and `NotFound` for what they may not read. */
export function assertMayChange(
  snapshot: Snapshot,
  principal: Principal,
  { before, after }: { readonly before: AnyResource | undefined; readonly after: AnyResource | null },
): void {
  if (principal.kind === 'admin') return;
  if (before === undefined) {
    if (after === null) return;
    assertMay(snapshot, principal, about('create', after));
  } else {
    for (const verb of verbsOf(before, after)) assertMayOn(snapshot, principal, verb, before);
    if (after !== null && projectOf(before) !== projectOf(after))
      assertMay(snapshot, principal, about('create', after), 'spec.project');
  }
  assertMayChangeProject(snapshot, principal, { before, after });
  if (after === null) return;
  assertUses(snapshot, principal, { before, after });
  assertGivesWithinOwn(snapshot, principal, after);
}

function assertUses(
  snapshot: Snapshot,
  principal: Principal,
  { before, after }: { readonly before: AnyResource | undefined; readonly after: AnyResource },
): void {
  const { project } = after.metadata;
  const earlier = before ? usesOf(before, project) : [];
  for (const { question, field } of newUses(usesOf(after, project), earlier))
    assertMay(snapshot, principal, question, field);
}

/** A role in a project permits its labels; its weight, quota and limits, and whether it has any, are the fleet's. */
function assertMayChangeProject(
  snapshot: Snapshot,
  principal: Principal,
  { before, after }: { readonly before: AnyResource | undefined; readonly after: AnyResource | null },
): void {
  if ((before ?? after)?.kind !== 'project' || (before && after && equalJson(before.spec, after.spec))) return;
  const verb = before === undefined ? 'create' : after === null ? 'delete' : 'update';
  assertMay(snapshot, principal, { verb, resource: 'project' }, 'spec');
}

/** Which verbs a change needs: on and off, and restarts, are `power`; pausing a host, and resuming it, are `drain`. */
function verbsOf(before: AnyResource, after: AnyResource | null): readonly Verb[] {
  if (after === null || (isGoing(after) && !isGoing(before))) return ['delete'];
  if (before.kind === 'host' && after.kind === 'host') {
    const drains = before.spec.paused !== after.spec.paused;
    const { paused } = after.spec;
    const other = !equalJson({ ...before.spec, paused }, after.spec) || !sameLabels(before, after);
    return drains ? (other ? ['drain', 'update'] : ['drain']) : ['update'];
  }
  if (before.kind !== 'instance' || after.kind !== 'instance') return ['update'];
  const [off, on] = [withoutPower(before.spec), withoutPower(after.spec)];
  const power = !equalJson(powerOf(before.spec), powerOf(after.spec));
  const other = !equalJson(off, on) || !sameLabels(before, after);
  return power ? (other ? ['power', 'update'] : ['power']) : ['update'];
}

function sameLabels(before: AnyResource, after: AnyResource): boolean {
  return equalJson(before.metadata.labels, after.metadata.labels);
}

function isGoing({ metadata }: AnyResource): boolean {
  return metadata.deletionRequestedAtMs !== undefined;
}

function powerOf({ powerState, suspendTo = 'memory', starts = 0 }: InstanceSpec): unknown {
  return { powerState, suspendTo, starts };
}

function withoutPower({ powerState: _power, suspendTo: _to, starts: _starts, ...rest }: InstanceSpec): unknown {
  return rest;
}
