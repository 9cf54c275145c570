// `berth host taint|untaint|set`: changes an operator's settings of an existing host.

import { Command } from 'commander';
import { errorCodes } from '../../api/errors.ts';
import type { Taint } from '../../api/resources/host-rules.ts';
import type { Host } from '../../api/resources/host.ts';
import type { Labels } from '../../api/resources/metadata.ts';
import type { Cli } from '../cli.ts';
import { attempting, CommandError, usageError } from '../exit-codes.ts';
import { replace } from '../replace.ts';
import { openSession } from '../session.ts';
import { parseTaint, taintText } from './taints.ts';
import { amountOf, resourceClassOf } from '../options/class-amounts.ts';
import { amountText, collect, parseInteger, parseLabels } from '../options/units.ts';

const advice = { NotFound: '"berth host ls" shows the hosts' } as const;

export function taintCommand(cli: Cli): Command {
  return new Command('taint')
    .description(
      'Add taints to a host, to keep away instances that do not tolerate them: KEY[=VALUE][:NoSchedule|PreferNoSchedule]',
    )
    .argument('<host>')
    .argument('<taint...>')
    .action(async (name: string, texts: readonly string[], _options: unknown, command: Command) => {
      const taints = texts.map(parseTaint);
      const host = await change(cli, command, name, (spec) => ({
        ...spec,
        taints: [...(spec.taints ?? []).filter((old) => !taints.some((taint) => sameTaint(old, taint))), ...taints],
      }));
      cli.stdout.write(`${name} has the taints ${(host.spec.taints ?? []).map(taintText).join(', ')}\n`);
    });
}

export function untaintCommand(cli: Cli): Command {
  return new Command('untaint')
    .description('Remove taints from a host, by KEY or KEY:EFFECT; without any, remove all')
    .argument('<host>')
    .argument('[taint...]')
    .action(async (name: string, texts: readonly string[], _options: unknown, command: Command) => {
      const gone = (taint: Taint): boolean => texts.length === 0 || texts.some((text) => meansTaint(text, taint));
      const host = await change(cli, command, name, ({ taints, ...spec }) => {
        const unknown = texts.find((text) => !(taints ?? []).some((taint) => meansTaint(text, taint)));
        if (unknown !== undefined) throw noSuchTaint(name, unknown, taints ?? []);
        const left = (taints ?? []).filter((taint) => !gone(taint));
        return left.length === 0 ? spec : { ...spec, taints: left };
      });
      const left = (host.spec.taints ?? []).map(taintText).join(', ');
      cli.stdout.write(left === '' ? `${name} has no taints\n` : `${name} has the taints ${left}\n`);
    });
}

/** By key, or by key and effect. */
function meansTaint(text: string, taint: Taint): boolean {
  return text === taint.key || sameTaint(parseTaint(text), taint);
}

function noSuchTaint(host: string, text: string, taints: readonly Taint[]): CommandError {
  return new CommandError(
    errorCodes.NotFound.exitCode,
    `cannot remove taint "${text}" from host "${host}": the host does not have it`,
    { advice: taints.length === 0 ? 'it has no taints' : `it has: ${taints.map(taintText).join(', ')}` },
  );
}

function sameTaint(a: Taint, b: Taint): boolean {
  return a.key === b.key && a.effect === b.effect;
}

interface SetOptions {
  readonly dedicated?: boolean;
  readonly dedicatedTo?: string;
  readonly instancesMax?: string;
  readonly label: readonly string[];
  readonly trait: readonly string[];
  readonly reserve: readonly string[];
  readonly overcommit: readonly string[];
  readonly controlPlane?: boolean;
}

export function setCommand(cli: Cli): Command {
  return new Command('set')
    .description('Change which instances a host accepts and how its resources are allocated')
    .argument('<host>')
    .option('--dedicated', 'only for instances that request a dedicated host')
    .option('--no-dedicated', 'for all instances that fit')
    .option('--dedicated-to <project>', 'only for instances of this project; "" for all projects')
    .option('--instances-max <count>', 'at most this many instances; none: as many as fit')
    .option('--label <key=value>', 'add this label; KEY= removes it; may be repeated', collect, [])
    .option('--trait <trait>', 'add this trait; !TRAIT removes it; may be repeated', collect, [])
    .option(
      '--reserve <class=amount>',
      "reserve for the host itself: memory=2GiB, disk=10%, or a resource class: MEMORY_MB=2048; memory= for the agent's setting; may be repeated",
      collect,
      [],
    )
    .option(
      '--overcommit <class=ratio>',
      "overcommit ratio: cpus=8; cpus= for its pool's ratio, else 4; may be repeated",
      collect,
      [],
    )
    .option('--control-plane', 'the control plane runs here: place no instances')
    .option('--no-control-plane', 'place instances here, even if the control plane runs here')
    .action(async (name: string, options: SetOptions, command: Command) => {
      if (Object.values(options).every((value) => Array.isArray(value) && value.length === 0))
        throw usageError(`no change of host "${name}" is given`, '"berth host set --help" shows the options');
      const host = await change(cli, command, name, (spec) => changedSpec(spec, options), labelsBy(options.label));
      for (const line of wholeReserves(host)) cli.stderr.write(`${line}\n`);
      cli.stdout.write(`${host.metadata.name} changed\n`);
    });
}

type Spec = Host['spec'];

/** Transforms labels. */
type LabelChange = (before: Labels) => Labels;

function labelsBy(pairs: readonly string[]): LabelChange {
  const changes = parseLabels('--label', pairs);
  return (before) =>
    Object.fromEntries(
      Object.entries({ ...before, ...changes }).filter(
        ([key]) => !(Object.hasOwn(changes, key) && changes[key] === ''),
      ),
    );
}

function changedSpec(spec: Spec, options: SetOptions): Spec {
  const { dedicated, dedicatedTo, instancesMax, trait, controlPlane } = options;
  const { dedicatedTo: _owner, instancesMax: _max, ...rest } = spec;
  return {
    ...rest,
    ...(dedicated === undefined ? {} : { dedicated }),
    ...ownerOf(spec, dedicatedTo),
    ...maxOf(spec, instancesMax),
    ...(trait.length === 0 ? {} : { traits: changedTraits(spec.traits ?? [], trait) }),
    ...(controlPlane === undefined ? {} : { controlPlane }),
    ...reserveOf(spec, options.reserve),
    allocationRatios: changedRatios(spec.allocationRatios, options.overcommit),
  };
}

function ownerOf({ dedicatedTo: before }: Spec, wanted: string | undefined): Pick<Spec, 'dedicatedTo'> {
  const dedicatedTo = wanted ?? before ?? '';
  return dedicatedTo === '' ? {} : { dedicatedTo };
}

function maxOf({ instancesMax: before }: Spec, wanted: string | undefined): Pick<Spec, 'instancesMax'> {
  if (wanted === 'none') return {};
  if (wanted !== undefined)
    return { instancesMax: parseInteger('--instances-max', wanted, { min: 0, max: 1_000_000 }) };
  return before === undefined ? {} : { instancesMax: before };
}

function changedTraits(before: readonly string[], changes: readonly string[]): string[] {
  const traits = new Set(before);
  for (const text of changes) {
    if (text.startsWith('!')) traits.delete(text.slice(1));
    else traits.add(text);
  }
  return [...traits];
}

/**
 * Reserving more than the host has is valid, because a host may grow; but then the host takes no instances, which
 * deserves a warning.
 */
function wholeReserves({ metadata, spec, status }: Host): string[] {
  return Object.entries(spec.reserved ?? {}).flatMap(([resourceClass, kept]) => {
    const total = spec.inventory?.[resourceClass]?.total ?? status.capacity?.[resourceClass];
    if (total === undefined || kept === 0 || kept < total) return [];
    return [
      `warning: ${metadata.name} has ${amountText(resourceClass, total)}, and ${amountText(resourceClass, kept)} are reserved: nothing is left for instances`,
    ];
  });
}

/** Amounts go to `reserved`, shares to `inventory`; each replaces the other, and an empty text removes both. */
function reserveOf(spec: Spec, pairs: readonly string[]): Pick<Spec, 'reserved' | 'inventory'> {
  if (pairs.length === 0) return {};
  const reserved: Record<string, number> = { ...spec.reserved };
  const inventory = { ...spec.inventory };
  for (const [word, text] of Object.entries(parseLabels('--reserve', pairs))) {
    const resourceClass = resourceClassOf(word);
    const percent = /^(\d{1,3}(?:\.\d{1,2})?)%$/.exec(text)?.[1];
    const { reservedPercent: _percent, ...units } = inventory[resourceClass] ?? {};
    if (text === '') {
      delete reserved[resourceClass];
      if (Object.keys(units).length > 0) inventory[resourceClass] = units;
      else delete inventory[resourceClass];
      continue;
    }
    if (percent === undefined) {
      reserved[resourceClass] = amountOf(`--reserve ${word}`, resourceClass, text);
      if (inventory[resourceClass]) inventory[resourceClass] = units;
      continue;
    }
    if (Number(percent) > 100) throw usageError(`--reserve ${word} cannot be "${text}"`, 'at most 100%');
    delete reserved[resourceClass];
    inventory[resourceClass] = { ...units, reservedPercent: Number(percent) };
  }
  return { reserved, inventory };
}

function changedRatios(before: Spec['allocationRatios'], pairs: readonly string[]): Record<string, number> {
  const ratios: Record<string, number> = { ...before };
  for (const [word, text] of Object.entries(parseLabels('--overcommit', pairs))) {
    const resourceClass = resourceClassOf(word);
    if (text === '') {
      delete ratios[resourceClass];
      continue;
    }
    ratios[resourceClass] = parseRatio(`--overcommit ${word}`, text, 'nothing to remove it');
  }
  return ratios;
}

/** `otherwise`: the alternative to a number. */
export function parseRatio(flag: string, text: string, otherwise: string): number {
  const ratio = /^\d{1,4}(\.\d{1,3})?$/.test(text) ? Number(text) : 0;
  if (ratio < 0.01 || ratio > 1000)
    throw usageError(`${flag} cannot be "${text}"`, `write a number from 0.01 to 1000, or ${otherwise}`);
  return ratio;
}

async function change(
  cli: Cli,
  command: Command,
  name: string,
  changed: (spec: Spec) => Spec,
  labels: LabelChange = (before) => before,
): Promise<Host> {
  const { client } = await openSession(cli, command);
  return attempting(
    `change host "${name}"`,
    () => replace(client, { kind: 'host', name, labels, change: ({ spec }: Host) => changed(spec) }),
    advice,
  );
}
