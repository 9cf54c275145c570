// How long boots of guests take, for the metrics: as a whole and by step, counted when a guest becomes ready. Every control plane sees every
// boot, so their counts are equal but for what happened before each started.

import { Histogram, type Registry } from 'prom-client';
import type { Instance } from '../../api/resources/instance.ts';
import type { Cache } from '../../core/state/cache.ts';

/** From a fake guest to one that is downloaded first. */
const bootBuckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600, 1_800];
/** Steps that agents name; others count as `other`, so that no agent makes time series. */
const stepNames: ReadonlySet<string> = new Set(['pull', 'clone', 'seed', 'program', 'create', 'start', 'boot']);
/** Further images count under the empty name. */
const imagesMax = 100;
/** Boots that are remembered: a health check that fails and passes again is no boot. */
const knownMax = 50_000;

/** `named`: the registry of those who may know the names of what is in the fleet. */
export function measureBoots(registry: Registry, named: Registry, cache: Pick<Cache, 'onChange'>): void {
  const steps = new Histogram({
    name: 'berth_boot_step_seconds',
    help: 'Time of each step of a boot on its host, by step',
    labelNames: ['step'],
    buckets: bootBuckets,
    registers: [],
  });
  const boots = new Histogram({
    name: 'berth_boot_seconds',
    help: 'Time from the first step of a boot on its host until the guest was ready',
    buckets: bootBuckets,
    registers: [],
  });
  const byImage = new Histogram({
    name: 'berth_image_boot_seconds',
    help: 'The same by image, for the first 100 images',
    labelNames: ['image'],
    buckets: bootBuckets,
    registers: [],
  });
  const known = new Set<string>();
  const images = new Set<string>();
  cache.onChange(({ before, after }) => {
    if (after?.kind !== 'instance' || after.status.guest?.ready !== true) return;
    if (before?.kind === 'instance' && before.status.guest?.ready === true) return;
    const boot = bootOf(after);
    if (boot === undefined || known.has(boot.id)) return;
    if (known.size >= knownMax) known.clear();
    known.add(boot.id);
    const { image } = after.spec;
    if (images.size < imagesMax) images.add(image);
    boots.observe(boot.seconds);
    byImage.observe({ image: images.has(image) ? image : '' }, boot.seconds);
    for (const { step, seconds } of boot.steps) steps.observe({ step }, seconds);
  });
  registry.registerMetric(boots);
  registry.registerMetric(steps);
  named.registerMetric(byImage);
}

interface Boot {
  readonly id: string;
  readonly seconds: number;
  readonly steps: readonly { readonly step: string; readonly seconds: number }[];
}

/** By the clock of its host; undefined: its agent reports no steps. */
function bootOf({ metadata, status: { guest, incarnation } }: Instance): Boot | undefined {
  const phases = guest?.phases ?? [];
  const [first] = phases;
  if (first === undefined) return undefined;
  const endMs = Math.max(...phases.map(({ startedAtMs, durationMs }) => startedAtMs + durationMs));
  return {
    id: `${metadata.id}:${incarnation}:${first.startedAtMs}`,
    seconds: Math.max(0, endMs - first.startedAtMs) / 1_000,
    steps: phases.map(({ name, durationMs }) => ({
      step: stepNames.has(name) ? name : 'other',
      seconds: Math.max(0, durationMs) / 1_000,
    })),
  };
}
