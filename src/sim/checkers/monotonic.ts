// Invariant 7: observedGeneration, incarnation, restart count, generations and epochs never fall; a
// report that speaks of another incarnation, another host or an ended session changes nothing.

import type { Host } from '../../api/resources/host.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Provider } from '../../core/state/records.ts';
import type { Checker, Facts, SentReport } from './checker.ts';

export function monotonicChecker({ state, excused }: Facts): Checker {
  const sent = new Map<string, SentReport[]>();
  /** Of hosts that the commit at hand changes. */
  const epochBefore = new Map<string, number>();

  const checkInstance = (before: Instance, after: Instance): string | undefined => {
    if (before.metadata.id !== after.metadata.id) return undefined; // the last Plan of one and the first of the next in one commit
    const name = `instance ${after.metadata.name}`;
    const fallen =
      (after.status.incarnation < before.status.incarnation && 'incarnation') ||
      (after.status.restartCount < before.status.restartCount && 'restartCount') ||
      (after.status.observedGeneration < before.status.observedGeneration && 'observedGeneration') ||
      (after.metadata.generation < before.metadata.generation && 'generation');
    if (fallen) return `${fallen} of ${name} fell`;
    if (after.status.observedGeneration > after.metadata.generation)
      return `${name} claims to have seen generation ${after.status.observedGeneration} of ${after.metadata.generation}`;
    return checkReport(before, after);
  };

  /** A commit that brings a new report into an instance's status. */
  const checkReport = (before: Instance, after: Instance): string | undefined => {
    const { report, host = '', incarnation } = after.status;
    if (report === undefined || JSON.stringify(report) === JSON.stringify(before.status.report)) return undefined;
    const name = `report ${report.epoch}/${report.sequence} of ${after.metadata.name}`;
    const last = before.status.report;
    const older =
      last && (report.epoch < last.epoch || (report.epoch === last.epoch && report.sequence <= last.sequence));
    if (older && before.status.incarnation === incarnation)
      return `${name} was taken after ${last.epoch}/${last.sequence}`;
    const present = state.get('host', `hosts/${host}`)?.status.epoch;
    // A report and the next registration may share a commit: then the report came first.
    if (present !== report.epoch && epochBefore.get(host) !== report.epoch)
      return `${name} was taken though session ${present} of ${host} had begun`;
    const said = sent.get(`${host} ${report.epoch} ${report.sequence}`) ?? [];
    const meant = said.find(
      (each) =>
        each.report.instanceId === after.metadata.id &&
        each.report.incarnation === incarnation &&
        // Two that speak for one host may give two reports one number.
        (!excused.host(host) || each.report.guest.state === after.status.guest?.state),
    );
    if (meant === undefined) return `${name} was taken, but its host never said that of incarnation ${incarnation}`;
    if (after.status.guest?.state !== meant.report.guest.state)
      return `${name} said ${meant.report.guest.state} and ${after.status.guest?.state ?? 'nothing'} was recorded`;
    return undefined;
  };

  return {
    invariant: 7,
    overRestore: 'after',
    onReport(report) {
      const name = `${report.host} ${report.epoch} ${report.report.sequence}`;
      const said = sent.get(name) ?? [];
      said.push(report);
      sent.set(name, said);
    },
    onCommit(commit) {
      epochBefore.clear();
      for (const { before } of commit.events)
        if (before?.kind === 'host') epochBefore.set(before.metadata.name, before.status.epoch);
      for (const { key, before, after } of commit.events) {
        const fault = checkPair(before, after);
        if (fault !== undefined) return `${fault} (${key})`;
      }
      return undefined;
    },
  };

  function checkPair(before: unknown, after: unknown): string | undefined {
    if (isKind<Instance>(before, 'instance') && isKind<Instance>(after, 'instance'))
      return checkInstance(before, after);
    if (isKind<Host>(before, 'host') && isKind<Host>(after, 'host'))
      return after.status.epoch < before.status.epoch ? `the epoch of host ${after.metadata.name} fell` : undefined;
    if (isKind<Provider>(before, 'provider') && isKind<Provider>(after, 'provider'))
      return after.generation <= before.generation ? `the generation of provider ${after.id} did not grow` : undefined;
    return undefined;
  }
}

function isKind<R extends { readonly kind: string }>(record: unknown, kind: R['kind']): record is R {
  return typeof record === 'object' && record !== null && 'kind' in record && record.kind === kind;
}
