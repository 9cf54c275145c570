// Host terms: what an instance requires of a host's record. Plain data and small: its JSON is the key under which
// requests share their verdicts on hosts. Image terms are cached by the image's spec, which never changes in place; the
// cache changes no answer.

import { isContainerImage } from '../../api/container-image.ts';
import { bootOf } from '../../api/instances/firmware.ts';
import { attemptKinds } from '../../api/resources/check.ts';
import type { DriverOffer, LiveKind } from '../../api/resources/host.ts';
import type { HostRule, Preference, Toleration, TraitRules } from '../../api/resources/host-rules.ts';
import { type ImageSpec, imageKey } from '../../api/resources/image.ts';
import type { Labels } from '../../api/resources/metadata.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { asksOf, volumesOf } from '../state/volumes.ts';
import { type AskingSpec, queryOf } from './demand.ts';
import { vocabularyOf } from './vocabulary.ts';

/** What rules about a host's record may read. Requests with equal terms share their verdicts. */
export interface HostTerms {
  /**
   * Null when the image no longer exists; undefined when none is requested, as by a task. `key`: as hosts report it.
   */
  readonly image?:
    | { readonly name: string; readonly architecture: string; readonly key?: string; readonly container?: true }
    | null
    | undefined;
  /** The driver that the instance requests or its image needs. */
  readonly driver?: string | undefined;
  readonly pool?: string | undefined;
  readonly hostLabels?: Labels | undefined;
  readonly hostRules?: readonly HostRule[] | undefined;
  readonly traits?: TraitRules | undefined;
  /** Aggregates of its resource query. */
  readonly aggregates?: AggregateRules | undefined;
  /** UUIDs of providers that its resource query names: of the host, all of them. */
  readonly inTree?: readonly string[] | undefined;
  readonly preferences?: readonly Preference[] | undefined;
  readonly avoidHosts?: readonly string[] | undefined;
  readonly tolerations?: readonly Toleration[] | undefined;
  readonly dedicated?: true | undefined;
  /** Hosts of its volumes; empty when they are on no host yet; absent when it has none. */
  readonly volumesOn?: readonly string[] | undefined;
  /** It has a program to run, which not every driver can give its guests. */
  readonly runs?: true | undefined;
  /** What its host's agent and driver must be able to give its guest; absent: nothing that is not common. */
  readonly needs?: readonly DriverOffer[] | undefined;
  /** It moves while it runs: to a host whose driver is such a one. */
  readonly like?: LiveKind | undefined;
  /** Hosts without an agent may take it: it is a task, and some host is such a one. */
  readonly outside?: true | undefined;
  /** Set only when some host is dedicated to the project, so that all other projects share their verdicts. */
  readonly project?: string | undefined;
}

export interface AggregateRules {
  /** One aggregate of each list. */
  readonly memberOf: readonly (readonly string[])[];
  readonly notMemberOf: readonly string[];
}

export function hostTermsOf(
  snapshot: Snapshot,
  { metadata: { project }, spec }: { readonly metadata: { readonly project: string }; readonly spec: AskingSpec },
): HostTerms {
  const { placement } = spec;
  const image = spec.image === undefined ? undefined : snapshot.imageByName(spec.image)?.value;
  return {
    image: spec.image === undefined ? undefined : image ? imageTerm(image.metadata.name, image.spec) : null,
    driver: placement.driver ?? image?.spec.backend,
    pool: placement.pool,
    hostLabels: placement.hostLabels,
    hostRules: placement.hostRules,
    traits: placement.query === undefined ? placement.traits : traitsWithQuery(placement),
    aggregates: placement.query === undefined ? undefined : aggregatesOf(placement),
    inTree: placement.query === undefined ? undefined : queryOf(placement)?.inTree,
    preferences: placement.preferences,
    avoidHosts: placement.avoidHosts,
    tolerations: placement.tolerations,
    dedicated: placement.dedicated || undefined,
    volumesOn: spec.volumes && asksOf(volumesOf(snapshot, { project, volumes: spec.volumes })).hosts,
    runs: spec.run === undefined ? undefined : true,
    needs: needsOf(spec, image?.spec),
    outside: mayGoOutside(snapshot, spec) || undefined,
    project: ownerOf(snapshot, project),
  };
}

function needsOf(spec: AskingSpec, image: ImageSpec | undefined): DriverOffer[] | undefined {
  const { checks, containers } = spec;
  const needs = new Set<DriverOffer>();
  const { firmware, tpm } = bootOf(spec, image);
  if (firmware !== undefined) needs.add(firmware);
  if (tpm) needs.add('tpm');
  for (const check of Object.values(checks ?? {}))
    for (const kind of attemptKinds) if (check[kind] !== undefined) needs.add(kind);
  if (containers?.some(({ mounts, stopGraceMs }) => mounts !== undefined || stopGraceMs !== undefined) === true)
    needs.add('mounts');
  if (containers?.some(({ mounts }) => mounts?.some(({ volume }) => volume !== undefined)) === true)
    needs.add('filesystems');
  return needs.size === 0 ? undefined : [...needs].sort();
}

/** Only room without a guest: hosts of an inventory run none of ours. */
export function mayGoOutside(snapshot: Snapshot, { ttlMs, image }: AskingSpec): boolean {
  return ttlMs !== undefined && image === undefined && vocabularyOf(snapshot).outside > 0;
}

/** The project, where some host is dedicated to it. */
export function ownerOf(snapshot: Snapshot, project: string): string | undefined {
  return vocabularyOf(snapshot).owners.has(project) ? project : undefined;
}

type ImageTerm = NonNullable<HostTerms['image']>;
const imageTerms = new WeakMap<ImageSpec, ImageTerm>();

/** Computed once per image: its key reads all of its fields. */
function imageTerm(name: string, spec: ImageSpec): ImageTerm {
  let term = imageTerms.get(spec);
  if (!term || term.name !== name) {
    term = {
      name,
      architecture: spec.architecture,
      key: imageKey(spec),
      ...(isContainerImage(spec) ? { container: true } : {}),
    };
    imageTerms.set(spec, term);
  }
  return term;
}

function aggregatesOf(placement: AskingSpec['placement']): AggregateRules | undefined {
  const { memberOf = [], notMemberOf = [] } = queryOf(placement) ?? {};
  return memberOf.length + notMemberOf.length === 0 ? undefined : { memberOf, notMemberOf };
}

function traitsWithQuery(placement: AskingSpec['placement']): TraitRules {
  const { traits } = placement;
  const asked = queryOf(placement)?.traits;
  if (!asked) return { anyOf: [[]] }; // an unreadable query matches no host
  return {
    required: [...(traits?.required ?? []), ...(asked.required ?? [])],
    forbidden: [...(traits?.forbidden ?? []), ...(asked.forbidden ?? [])],
    anyOf: [...(traits?.anyOf ?? []), ...(asked.anyOf ?? [])],
  };
}
