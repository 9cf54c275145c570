// Asks the server for a plan, and applies it by its hash.

import type { DrainOptions } from '../../../src/api/plans/host-plan.ts';
import { rebalanceMoves } from '../../../src/api/plans/rebalance.ts';
import { isUsedKind } from '../../../src/api/plans/used-kinds.ts';
import { client } from '../../data/client.ts';
import { kindNamed, paths } from '../../paths.ts';
import { type Answers, numberOf, type PlanVerb } from './plan-forms.ts';
import {
  hostPlanShown,
  migrationShown,
  rebalanceShown,
  removalShown,
  resizeShown,
  rolloutShown,
  scaleShown,
  type ShownPlan,
} from './shown-plan.ts';

/** What came of applying a plan. */
export interface Applied {
  readonly message: string;
  /** A page that shows how far it is. */
  readonly path?: string;
}

interface Planner {
  plan(answers: Answers): Promise<ShownPlan>;
  /** Throws `Conflict` when the plan is another by now. */
  apply(answers: Answers, hash: string): Promise<Applied>;
}

type ChangedWorkload = Parameters<typeof client.replace<'workload'>>[2];

const minuteMs = 60_000;

const planners: Readonly<Record<PlanVerb, Planner>> = {
  drain: {
    async plan(answers) {
      const { plan } = await client.drainHost(of(answers, 'host'), drainOptions(answers));
      return hostPlanShown(present(plan));
    },
    async apply(answers, hash) {
      const host = of(answers, 'host');
      await client.drainHost(host, { ...drainOptions(answers), apply: hash });
      return { message: `Host ${host} is being drained.` };
    },
  },
  evacuate: {
    async plan(answers) {
      const { plan } = await client.evacuateHost(of(answers, 'host'));
      return hostPlanShown(present(plan));
    },
    async apply(answers, hash) {
      const host = of(answers, 'host');
      await client.evacuateHost(host, { apply: hash });
      return { message: `Host ${host} was removed.`, path: paths.list('host') };
    },
  },
  rebalance: {
    async plan(answers) {
      const { plan } = await client.rebalance(rebalanceOptions(answers));
      return rebalanceShown(present(plan));
    },
    async apply(answers, hash) {
      const { drains = [] } = await client.rebalance({ ...rebalanceOptions(answers), apply: hash });
      return { message: `Being emptied: ${drains.map(({ host }) => host).join(', ')}.` };
    },
  },
  migrate: {
    async plan(answers) {
      const { plan } = await client.migrateInstance(of(answers, 'instance'), inProject(answers), moveOptions(answers));
      return migrationShown(present(plan));
    },
    async apply(answers, hash) {
      const name = of(answers, 'instance');
      await client.migrateInstance(name, inProject(answers), { ...moveOptions(answers), apply: hash });
      return { message: `Instance ${name} moves.`, path: paths.one('instance', { name, ...inProject(answers) }) };
    },
  },
  resize: {
    async plan(answers) {
      const { plan } = await client.resizeInstance(of(answers, 'instance'), inProject(answers), amounts(answers));
      return resizeShown(plan);
    },
    async apply(answers, hash) {
      const name = of(answers, 'instance');
      await client.resizeInstance(name, inProject(answers), { ...amounts(answers), apply: hash });
      return { message: `Instance ${name} is resized.`, path: paths.one('instance', { name, ...inProject(answers) }) };
    },
  },
  scale: {
    async plan(answers) {
      const plan = await client.scaleWorkload(of(answers, 'workload'), copies(answers), dryRun(answers));
      return scaleShown(plan, { project: answers['project'] ?? 'default' });
    },
    async apply(answers, hash) {
      await client.scaleWorkload(of(answers, 'workload'), { ...copies(answers), apply: hash }, inProject(answers));
      return { message: `Workload ${of(answers, 'workload')} is scaled.`, path: workloadPath(answers) };
    },
  },
  undo: {
    async plan(answers) {
      const { rollout } = await client.undoWorkload(of(answers, 'workload'), revision(answers), dryRun(answers));
      return rolloutShown(present(rollout));
    },
    async apply(answers, hash) {
      const body = { ...revision(answers), apply: hash };
      await client.undoWorkload(of(answers, 'workload'), body, inProject(answers));
      return { message: `Workload ${of(answers, 'workload')} is updated.`, path: workloadPath(answers) };
    },
  },
  update: {
    async plan(answers) {
      const name = of(answers, 'workload');
      const { rollout } = await client.dryRunOfChange('workload', name, await updated(answers));
      return rolloutShown(present(rollout));
    },
    async apply(answers, apply) {
      const name = of(answers, 'workload');
      await client.replace('workload', name, await updated(answers), { apply });
      return { message: `Workload ${name} is updated.`, path: workloadPath(answers) };
    },
  },
  remove: {
    async plan(answers) {
      const { kind, name, place } = removed(answers);
      const { effects } = await client.dryRunOfDelete(kind, name, place);
      return removalShown(`${kind} ${name}`, effects);
    },
    async apply(answers, hash) {
      const { kind, name, place } = removed(answers);
      await client.delete(kind, name, { ...place, ...(hash === '' ? {} : { apply: hash }) });
      return { message: `${kind} ${name} was removed.`, path: paths.list(kind) };
    },
  },
};

export function makePlan(verb: PlanVerb, answers: Answers): Promise<ShownPlan> {
  return planners[verb].plan(answers);
}

/** `hash` is empty for a change that has none. */
export function applyPlan(verb: PlanVerb, answers: Answers, hash: string): Promise<Applied> {
  return planners[verb].apply(answers, hash);
}

function of(answers: Answers, name: string): string {
  return answers[name] ?? '';
}

function inProject({ project }: Answers): { readonly project?: string } {
  return project === undefined ? {} : { project };
}

function drainOptions(answers: Answers): Partial<DrainOptions> {
  const [movesMax, deadline] = [numberOf(answers, 'movesMax'), numberOf(answers, 'deadline')];
  return {
    stopOthers: answers['stopOthers'] === 'true',
    ...(movesMax === undefined ? {} : { movesMax }),
    ...(deadline === undefined ? {} : { deadlineMs: deadline * minuteMs }),
    atDeadline: answers['atDeadline'] === 'stop' ? 'stop' : 'leave',
    ...(answers['thenOpen'] === 'true' ? { thenOpen: true } : {}),
  };
}

function rebalanceOptions(answers: Answers): Parameters<typeof client.rebalance>[0] {
  const [budget, threshold] = [numberOf(answers, 'budget'), numberOf(answers, 'threshold')];
  const [movesMax, coolDown] = [numberOf(answers, 'movesMax'), numberOf(answers, 'coolDown')];
  const moves = rebalanceMoves.find((each) => each === answers['moves']);
  const emptiedMin = numberOf(answers, 'emptiedMin');
  return {
    ...(answers['pool'] === undefined ? {} : { pool: answers['pool'] }),
    ...(budget === undefined ? {} : { budget }),
    ...(threshold === undefined ? {} : { thresholdPercent: threshold }),
    ...(movesMax === undefined ? {} : { movesMax }),
    ...(coolDown === undefined ? {} : { coolDownMs: coolDown * minuteMs }),
    ...(moves === undefined ? {} : { moves }),
    ...(emptiedMin === undefined ? {} : { emptiedMin }),
  };
}

function moveOptions(answers: Answers): Parameters<typeof client.migrateInstance>[2] {
  const bandwidth = numberOf(answers, 'bandwidth');
  return {
    ...(answers['to'] === undefined ? {} : { to: answers['to'] }),
    ...(bandwidth === undefined ? {} : { bytesPerSecondMax: bandwidth * 1024 ** 2 }),
  };
}

function workloadPath(answers: Answers): string {
  return paths.one('workload', { name: of(answers, 'workload'), ...inProject(answers) });
}

function copies(answers: Answers): { readonly replicas: number } {
  return { replicas: numberOf(answers, 'replicas') ?? 0 };
}

function dryRun(answers: Answers) {
  return { ...inProject(answers), dryRun: true };
}

function revision(answers: Answers): { readonly to?: number } {
  const to = numberOf(answers, 'to');
  return to === undefined ? {} : { to };
}

/** The workload as it is now, with the answers. The hash says which one the plan is of. */
async function updated(answers: Answers): Promise<ChangedWorkload> {
  const { metadata, spec } = await client.get('workload', of(answers, 'workload'), inProject(answers));
  const { template } = spec;
  const [cpus, memoryMiB] = [numberOf(answers, 'cpus'), numberOf(answers, 'memory')];
  const changes = {
    ...(answers['image'] === undefined ? {} : { image: answers['image'] }),
    ...(answers['size'] === undefined ? {} : { size: answers['size'] }),
    ...(cpus === undefined ? {} : { cpus }),
    ...(memoryMiB === undefined ? {} : { memoryMiB }),
  };
  return {
    metadata: { project: metadata.project, labels: metadata.labels },
    spec: { ...spec, template: { ...template, spec: { ...template.spec, ...changes } } },
  };
}

function amounts(answers: Answers): Parameters<typeof client.resizeInstance>[2] {
  const [cpus, memoryMiB, diskGiB] = ['cpus', 'memory', 'disk'].map((name) => numberOf(answers, name));
  return {
    ...(cpus === undefined ? {} : { cpus }),
    ...(memoryMiB === undefined ? {} : { memoryMiB }),
    ...(diskGiB === undefined ? {} : { diskGiB }),
    ...(answers['size'] === undefined ? {} : { size: answers['size'] }),
  };
}

function removed(answers: Answers) {
  const kind = kindNamed(answers['kind'] ?? 'pool');
  if (kind === undefined || !isUsedKind(kind)) throw new Error(`"${answers['kind']}" is not a kind that others use`);
  return { kind, name: of(answers, 'name'), place: kind === 'group' ? inProject(answers) : {} };
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the server sent no plan');
  return value;
}
