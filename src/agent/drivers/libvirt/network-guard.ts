// Keeps libvirt's guests on the network `user` from link-local addresses: QEMU connects for them as the one user that libvirt runs it as. What listens
// on the host stays open to that user: other domains of the host run as it, too. It never makes rules for root.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describeError, type Logger } from '../../../base/log.ts';
import type { HostGuard } from '../../network/host-guard.ts';
import { DriverError } from '../../host/driver-error.ts';
import { idPattern } from '../guest-life/slots.ts';
import { elementsAt, readXml, type XmlElement } from './wire/xml.ts';

export interface NetworkGuardOptions {
  /** Absent: the agent may make no rules. */
  readonly guard: HostGuard | undefined;
  /** Of libvirt. */
  readonly capabilities: () => Promise<string>;
  readonly root: () => Promise<string>;
  /** New guests are on the network `user`. */
  readonly inUse: boolean;
  readonly log: Logger;
}

export class NetworkGuard {
  readonly #options: NetworkGuardOptions;
  /** The folders of guests that may be on the network `user`. */
  readonly #guests = new Set<string>();

  constructor(options: NetworkGuardOptions) {
    this.#options = options;
  }

  /** For a guest that is about to start there. Throws `HypervisorFailed` where nftables work and the rules do not load. */
  async close({
    instanceId,
    directory,
    log,
  }: {
    readonly instanceId: string;
    readonly directory: string;
    readonly log: Logger;
  }): Promise<void> {
    const { guard } = this.#options;
    if (guard === undefined) return;
    this.#guests.add(directory);
    try {
      await this.#closeToUser(guard);
    } catch (error) {
      const fault = await guard.fault();
      if (fault !== undefined) return log.warn(openText(fault));
      throw new DriverError(
        'HypervisorFailed',
        `cannot start ${instanceId}: the rules that keep it from link-local addresses do not load: ${describeError(error)}; nftables of this host must take them, or use another network than "user"`,
      );
    }
  }

  /** The guest is gone. */
  async forget(directory: string): Promise<void> {
    this.#guests.delete(directory);
    await this.#open();
  }

  /** Once the guests of earlier runs were found. */
  async settle(): Promise<void> {
    const { guard, root, inUse, log } = this.#options;
    if (guard === undefined) return;
    const folder = await root();
    for (const name of await readdir(folder)) if (idPattern.test(name)) this.#guests.add(join(folder, name));
    const wasClosed = await guard.adopt().catch(() => false); // without nft there is nothing to take away
    if (this.#guests.size === 0 || !(wasClosed || inUse)) return this.#open();
    await this.#closeToUser(guard).catch((error: unknown) => log.warn(openText(describeError(error))));
  }

  /** Why guests reach link-local addresses, for people; undefined: they do not, or the agent may make no rules. */
  async fault(): Promise<string | undefined> {
    const { guard, inUse, capabilities } = this.#options;
    if (guard === undefined || !inUse) return undefined;
    const user = userOf(await capabilities());
    const fault = user === undefined ? 'libvirt runs QEMU as root' : await guard.fault();
    return fault === undefined ? undefined : openText(fault);
  }

  stop(): void {
    this.#options.guard?.stop();
  }

  async #closeToUser(guard: HostGuard): Promise<void> {
    const user = userOf(await this.#options.capabilities());
    if (user !== undefined) await guard.close([user]);
  }

  async #open(): Promise<void> {
    await this.#options.guard
      ?.open(() => this.#guests.size === 0)
      .catch((error: unknown) =>
        this.#options.log.warn('cannot remove the rules that kept guests from link-local addresses', {
          error: describeError(error),
        }),
      );
  }
}

const openText = (reason: string): string => `guests on the network "user" reach link-local addresses: ${reason}`;

/** Whom libvirt runs QEMU as; undefined: root, or it does not say. */
export function userOf(capabilities: string): number | undefined {
  const models = elementsAt(readXml(capabilities), 'host', 'secmodel');
  const dac = models.find((each) => elementsAt(each, 'model').some((model) => textOf(model) === 'dac'));
  const label = dac && elementsAt(dac, 'baselabel').map(textOf)[0];
  const user = Number(/^\+(\d+):/.exec(label ?? '')?.[1] ?? 0);
  return user === 0 ? undefined : user;
}

const textOf = ({ children }: XmlElement): string => children.filter((each) => typeof each === 'string').join('');
