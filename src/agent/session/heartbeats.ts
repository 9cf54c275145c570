// Sends the heartbeats of one session, each with what has changed on the host since the last heartbeat that was answered.

import { type Heartbeat, type HeartbeatAnswer, type Registration, unknownGuestsMax } from '../../api/agent-protocol.ts';
import type { MaintenanceReport } from '../../api/resources/maintenance.ts';
import type { GuestUsageReport } from '../../api/guests/guest-usage.ts';
import { backoffMs } from '../../base/backoff.ts';
import { neverBuggify } from '../../base/buggify.ts';
import { sleep } from '../../base/clock.ts';
import { equalJson } from '../../base/equal-json.ts';
import { describeError } from '../../base/log.ts';
import { awaitWithin, settleWithin } from '../host/await-within.ts';
import type { AgentParts, SessionState } from './agent-parts.ts';
import { guestUsage } from './guest-usage.ts';
import { fingerprints, images, unknownVolumes } from './host-look.ts';
import { isSessionOver, SessionOver } from './session-over.ts';

type HostFacts = Omit<Required<Heartbeat>, 'epoch' | 'notReady' | 'usage' | 'maintenance'>;

const lookTimeoutMs = 1000;
const fingerprintMs = 10 * 60_000; // a hypervisor may have been installed or removed since

export class Heartbeats {
  readonly #parts: AgentParts;
  readonly #state: SessionState;
  /** What the control plane has, as far as it has answered. */
  #acknowledged: HostFacts;
  #now: HostFacts;
  #changesSeen: number;
  #lookedMs: number;
  #looking: Promise<void> | undefined;
  /** Measured and not sent yet. */
  #usage: GuestUsageReport | undefined;
  #measuring: Promise<void> | undefined;
  #maintenanceTold: MaintenanceReport | undefined;

  constructor(parts: AgentParts, state: SessionState, registration: Registration) {
    this.#parts = parts;
    this.#state = state;
    this.#acknowledged = {
      drivers: registration.drivers,
      images: registration.images,
      unknownGuests: [],
      unknownVolumes: [],
      guestsTold: false,
    };
    this.#now = this.#acknowledged;
    this.#changesSeen = this.#changes();
    this.#lookedMs = parts.options.clock.monotonicMs();
  }

  /** Runs until `signal` aborts. Throws what ends the session. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, prng, log, buggify = neverBuggify } = this.#parts.options;
    const { heartbeatMs } = this.#state.session;
    // Spread, so that hosts that registered together do not all send at the same moment.
    await sleep(clock, prng.below(Math.max(1, heartbeatMs)), signal);
    for (let attempt = 0; !signal.aborted; ) {
      this.#measure();
      // A driver or disk that hangs must not make the host look dead: what is not found in time is reported later.
      const around = (this.#looking ??= this.#lookAround());
      await settleWithin({ clock, timeoutMs: lookTimeoutMs, signal, what: 'looking around' }, () => around).catch(
        () => {},
      );
      if (signal.aborted) return;
      this.#noteUnknownGuests();
      const sent = this.#now;
      let delayMs = heartbeatMs;
      try {
        const sentMs = this.#parts.lease.nowMs;
        const maintenance = this.#parts.options.maintenance?.report;
        const { maintain } = await this.#send(sent, maintenance, signal);
        this.#renewLease(sentMs);
        this.#acknowledged = sent;
        this.#maintenanceTold = maintenance;
        if (maintain !== undefined) this.#parts.options.maintenance?.begin(maintain);
        attempt = 0;
        this.#parts.reporter.repeatStale();
        if (buggify('heartbeat-late')) delayMs += heartbeatMs / 4;
      } catch (error) {
        if (signal.aborted) return;
        if (isSessionOver(error)) throw error;
        log.warn('a heartbeat was not answered', { error: describeError(error) });
        delayMs = backoffMs(attempt++, { delayMsMin: 500, delayMsMax: heartbeatMs }, prng);
      }
      await sleep(clock, delayMs, signal);
      if (buggify('session-anew')) throw new SessionOver('the simulator ends this session');
    }
  }

  /** Throws when the orders of this session may be old for guests that need the lease. */
  #renewLease(sentMs: number): void {
    const { lease, ledger } = this.#parts;
    lease.renew(sentMs);
    if (!lease.endedInSession) return;
    const needed = ledger.instanceIds().some((id) => ledger.newestOf(id)?.assignment.selfStop === true);
    if (needed) throw new SessionOver('the lease of this host had ended');
  }

  /** Grows with every change of a driver, and with every driver that finds its guests again. */
  #changes(): number {
    const { options, recovery } = this.#parts;
    return options.drivers.reduce((sum, driver) => sum + (driver.changes?.() ?? 0), recovery.readyCount);
  }

  async #lookAround(): Promise<void> {
    const { clock, log } = this.#parts.options;
    const due = clock.monotonicMs() - this.#lookedMs >= fingerprintMs || this.#changes() !== this.#changesSeen;
    if (due) {
      this.#changesSeen = this.#changes();
      this.#lookedMs = clock.monotonicMs();
    }
    const found = {
      images: await images(this.#parts),
      unknownVolumes: await unknownVolumes(this.#parts, this.#state.synced),
      ...(due ? { drivers: await fingerprints(this.#parts) } : {}),
    };
    if (found.unknownVolumes.length > 0 && !equalJson(found.unknownVolumes, this.#now.unknownVolumes))
      log.warn('there are volumes on this host that the control plane does not speak of; they are left alone', {
        volumes: found.unknownVolumes,
      });
    this.#now = { ...this.#now, ...found };
    this.#looking = undefined;
  }

  /** Does not wait: a measurement that is not ready goes with the next heartbeat. */
  #measure(): void {
    if (!this.#state.session.takesUsage || this.#measuring) return;
    this.#measuring = guestUsage(this.#parts)
      .then(
        (usage) => {
          this.#usage = usage;
        },
        (error: unknown) => this.#parts.options.log.debug('cannot measure the guests', { error: describeError(error) }),
      )
      .finally(() => {
        this.#measuring = undefined;
      });
  }

  #noteUnknownGuests(): void {
    const { options, recovery, guests } = this.#parts;
    const { synced } = this.#state;
    const unknown = synced ? guests.unknownGuests() : [];
    const allReady = recovery.readyCount === options.drivers.length;
    this.#now = {
      ...this.#now,
      unknownGuests: unknown.slice(0, unknownGuestsMax),
      guestsTold: synced && allReady && unknown.length <= unknownGuestsMax,
    };
  }

  #send(now: HostFacts, maintenance: MaintenanceReport | undefined, signal: AbortSignal): Promise<HeartbeatAnswer> {
    const { options, api } = this.#parts;
    const { epoch, heartbeatMs } = this.#state.session;
    const before = this.#acknowledged;
    const usage = this.#usage;
    this.#usage = undefined; // a lost one is not repeated: the next one replaces it
    const heartbeat: Heartbeat = {
      epoch,
      ...(equalJson(now.drivers, before.drivers) ? {} : { drivers: now.drivers }),
      ...(equalJson(now.images, before.images) ? {} : { images: now.images }),
      ...(equalJson(now.unknownGuests, before.unknownGuests) ? {} : { unknownGuests: now.unknownGuests }),
      ...(equalJson(now.unknownVolumes, before.unknownVolumes) ? {} : { unknownVolumes: now.unknownVolumes }),
      ...(now.guestsTold === before.guestsTold ? {} : { guestsTold: now.guestsTold }),
      ...(usage === undefined ? {} : { usage }),
      ...(maintenance === undefined || equalJson(maintenance, this.#maintenanceTold) ? {} : { maintenance }),
    };
    const timeoutMs = Math.max(heartbeatMs, 5000);
    return awaitWithin({ clock: options.clock, timeoutMs, signal, what: 'a heartbeat' }, (limit) =>
      api.heartbeat(heartbeat, limit),
    );
  }
}
