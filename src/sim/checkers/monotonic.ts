// Invariant 7: observedGeneration, incarnation, restart count, generations and epochs never fall. A report of another incarnation, another
// host or an ended session changes nothing.

import type { Host } from '../../api/resources/host.ts';
import { type Instance, isToStartAgain } from '../../api/resources/instance.ts';
import type { Provider } from '../../core/state/records.ts';
import type { Commit } from '../history.ts';
import type { Checker, Facts, SentReport } from './checker.ts';

export const monotonicChecker = (facts: Facts): Checker => new MonotonicChecker(facts);

class MonotonicChecker implements Checker {
  readonly invariant = 7;
  readonly overRestore = 'after';
  readonly #facts: Facts;
  readonly #sent = new Map<string, SentReport[]>();
  /** Of hosts that this commit changes. */
  readonly #epochBefore = new Map<string, number>();

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  onReport(report: SentReport): void {
    const name = `${report.host} ${report.epoch} ${report.report.sequence}`;
    const sent = this.#sent.get(name) ?? [];
    sent.push(report);
    this.#sent.set(name, sent);
  }

  onCommit({ events }: Commit): string | undefined {
    this.#epochBefore.clear();
    for (const { before } of events)
      if (before?.kind === 'host') this.#epochBefore.set(before.metadata.name, before.status.epoch);
    for (const { key, before, after } of events) {
      const fault = this.#checkPair(before, after);
      if (fault !== undefined) return `${fault} (${key})`;
    }
    return undefined;
  }

  #checkPair(before: unknown, after: unknown): string | undefined {
    if (isKind<Instance>(before, 'instance') && isKind<Instance>(after, 'instance'))
      return this.#checkInstance(before, after);
    if (isKind<Host>(before, 'host') && isKind<Host>(after, 'host'))
      return after.status.epoch < before.status.epoch ? `the epoch of host ${after.metadata.name} fell` : undefined;
    if (isKind<Provider>(before, 'provider') && isKind<Provider>(after, 'provider'))
      return this.#checkProvider(before, after);
    return undefined;
  }

  /** A new child, or a new name, counts on no outside provider, as in the original; the record is written all the same. */
  #checkProvider(before: Provider, after: Provider): string | undefined {
    const fell = after.generation < before.generation || (!after.outside && after.generation === before.generation);
    return fell ? `the generation of provider ${after.id} did not grow` : undefined;
  }

  #checkInstance(before: Instance, after: Instance): string | undefined {
    if (before.metadata.id !== after.metadata.id) return undefined; // one was deleted and the next created in one commit
    const name = `instance ${after.metadata.name}`;
    const fallen = fallenField(before, after);
    if (fallen !== undefined) return `${fallen} of ${name} fell`;
    if (after.status.observedGeneration > after.metadata.generation)
      return `${name} claims to have seen generation ${after.status.observedGeneration} of ${after.metadata.generation}`;
    return this.#checkReport(before, after);
  }

  /** When a commit brings a new report into the status of an instance. */
  #checkReport(before: Instance, after: Instance): string | undefined {
    const { state } = this.#facts;
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
    if (present !== report.epoch && this.#epochBefore.get(host) !== report.epoch)
      return `${name} was taken though session ${present} of ${host} had begun`;
    const meant = this.#sentBy(after, `${host} ${report.epoch} ${report.sequence}`);
    if (meant === undefined) return `${name} was taken, but its host never said that of incarnation ${incarnation}`;
    const said = meant.report.guest;
    // A guest that ended and is to start again counts as stopped.
    const again = said.state !== 'absent' && isToStartAgain(said, after.status.startAgain);
    if (after.status.guest?.state !== (again ? 'stopped' : said.state))
      return `${name} said ${meant.report.guest.state} and ${after.status.guest?.state ?? 'nothing'} was recorded`;
    return undefined;
  }

  /** The report of this name on this incarnation. */
  #sentBy({ metadata, status }: Instance, name: string): SentReport | undefined {
    const { excused } = this.#facts;
    return this.#sent.get(name)?.find(
      ({ report }) =>
        report.instanceId === metadata.id &&
        report.incarnation === status.incarnation &&
        // Where an agent lies, two agents may give two reports one number.
        (!excused.host(status.host ?? '') || report.guest.state === status.guest?.state),
    );
  }
}

function fallenField(before: Instance, after: Instance): string | undefined {
  if (after.status.incarnation < before.status.incarnation) return 'incarnation';
  if (after.status.restartCount < before.status.restartCount) return 'restartCount';
  if (after.status.observedGeneration < before.status.observedGeneration) return 'observedGeneration';
  return after.metadata.generation < before.metadata.generation ? 'generation' : undefined;
}

function isKind<R extends { readonly kind: string }>(record: unknown, kind: R['kind']): record is R {
  return typeof record === 'object' && record !== null && 'kind' in record && record.kind === kind;
}
