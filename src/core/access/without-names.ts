// Answers about placement for callers who may not see hosts: hosts are counted instead of named, and so is what belongs to others.

import type { Capacity } from '../../api/capacity.ts';
import type { Explanation, HostExplanation, NearestChange } from '../../api/explanation.ts';
import type { Finding, VerifyReport } from '../../api/verify.ts';

/** Stands for a name. */
const hidden = '(hidden)';

/** `knows` tells whether the caller may read instances of a project. */
export function explanationWithoutNames(explanation: Explanation, knows: (project: string) => boolean): Explanation {
  const { host, reasons, queue, placed, preemption, nearest, hosts, continue: _continue, ...rest } = explanation;
  const own = (name: string): boolean => knows(name.split('/', 1)[0] ?? '');
  return {
    ...rest,
    ...(host === undefined ? {} : { host }),
    summary: summaryOf(explanation),
    reasons: reasons.map((reason) => ({ ...reason, examples: [] })),
    ...(queue ? { queue: { ...queue, ahead: queue.ahead.filter(own) } } : {}),
    ...(placed
      ? { placed: { ...placed, decision: summaryOf(explanation), better: [], runnersUp: [], changes: [] } }
      : {}),
    ...(preemption ? { preemption: { host: hidden, instances: preemption.instances.filter(own) } } : {}),
    ...(nearest ? { nearest: nearest.map((change) => withoutHosts(change, own)) } : {}),
    hosts: hosts.filter(({ current }) => current).map(withoutMessages),
  };
}

/** A message may name an instance for which the host is reserved, or what other projects have there. */
function withoutMessages({ refusals, ...host }: HostExplanation): HostExplanation {
  return { ...host, refusals: refusals.map(({ rule, reason }) => ({ rule, reason, message: reason })) };
}

function summaryOf({ host, counts, reasons, phase }: Explanation): string {
  if (host !== undefined) return `placed on ${host}; phase ${phase}`;
  const why = reasons.map(({ reason, hosts }) => `${hosts} ${reason}`).join(', ');
  return `${counts.fit} of ${counts.hosts} hosts fit${why === '' ? '' : `: ${why}`}`;
}

const changeMessages: Readonly<Record<NearestChange['change'], string>> = {
  AskLess: 'request less',
  ResumeHost: 'wait until a paused host is resumed',
  HostBack: 'wait until a silent host is back',
  RemoveTaint: 'ask an operator to remove a taint',
  DropRule: 'drop a placement rule',
  InstancesEnd: 'wait until other instances end',
  AddHost: 'ask an operator to add a host',
  Several: 'several changes are needed',
};

function withoutHosts(nearest: NearestChange, own: (name: string) => boolean): NearestChange {
  const { change, hostCount, cost, ask, instances } = nearest;
  return {
    change,
    message: changeMessages[change],
    hosts: [],
    hostCount,
    cost,
    ...(ask ? { ask } : {}),
    ...(instances ? { instances: instances.filter(own) } : {}),
  };
}

/** How many more fit, without what is on which host. */
export function capacityWithoutNames(capacity: Capacity): Capacity {
  return {
    ...capacity,
    sizes: capacity.sizes.map((size) => ({
      ...size,
      stranded: size.stranded.map((stranded) => ({ ...stranded, examples: [] })),
    })),
    losses: capacity.losses.map((loss) => ({
      ...loss,
      worst: loss.worst.map((worst) => ({ ...worst, hosts: worst.hosts.map(() => hidden), examples: [] })),
    })),
  };
}

/** The same for a caller who may see hosts, but not the names of guests. */
export function capacityWithoutGuests(capacity: Capacity): Capacity {
  const { losses } = capacity;
  const unnamed = losses.map((loss) => ({
    ...loss,
    worst: loss.worst.map((worst) => ({
      ...worst,
      examples: worst.examples.map((example) => ({ ...example, instance: hidden })),
    })),
  }));
  return { ...capacity, losses: unnamed };
}

/** What does not fit together, by host: what it is about is told to those who may read all guests. */
export function verifyReportWithoutNames(report: VerifyReport): VerifyReport {
  const unnamed = (finding: Finding): Finding => {
    const { subject, message: _message, cause: _cause, ...rest } = finding;
    const [kind = ''] = subject.split(' ', 1);
    if (kind === 'host') return finding;
    return { ...rest, subject: `${kind} ${hidden}`, message: hidden, cause: hidden };
  };
  return { ...report, findings: report.findings.map(unnamed) };
}
