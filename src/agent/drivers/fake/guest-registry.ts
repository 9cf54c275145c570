// The guests of a fake world by host, and the listeners for their changes. It changes no guest.

import type { FakeGuest } from './fake-guest.ts';

export class GuestRegistry {
  readonly #byHost = new Map<string, Map<string, FakeGuest>>();
  readonly #listeners = new Map<string, Set<(instanceId: string) => void>>();
  readonly #portsInUse = new Set<string>(); // "<host>/<port>", by other programs

  /** The guests of one host, or of all hosts, in the order of their creation. */
  list(host?: string): FakeGuest[] {
    return host === undefined
      ? [...this.#byHost.values()].flatMap((each) => [...each.values()])
      : [...(this.#byHost.get(host)?.values() ?? [])];
  }

  get(host: string, instanceId: string): FakeGuest | undefined {
    return this.#byHost.get(host)?.get(instanceId);
  }

  add(guest: FakeGuest): void {
    const onHost = this.#byHost.get(guest.host) ?? new Map<string, FakeGuest>();
    onHost.set(guest.instanceId, guest);
    this.#byHost.set(guest.host, onHost);
    this.changed(guest);
  }

  delete(guest: FakeGuest): void {
    this.#byHost.get(guest.host)?.delete(guest.instanceId);
    this.changed(guest);
  }

  changed(guest: FakeGuest): void {
    for (const listener of this.#listeners.get(guest.host) ?? []) listener(guest.instanceId);
  }

  onChange(host: string, listener: (instanceId: string) => void): () => void {
    const set = this.#listeners.get(host) ?? new Set();
    set.add(listener);
    this.#listeners.set(host, set);
    return () => set.delete(listener);
  }

  occupyPort(host: string, port: number): () => void {
    this.#portsInUse.add(`${host}/${port}`);
    return () => this.#portsInUse.delete(`${host}/${port}`);
  }

  portTaken(host: string, port: number): boolean {
    return (
      this.#portsInUse.has(`${host}/${port}`) ||
      this.list(host).some((guest) => guest.ports.some((each) => each.hostPort === port))
    );
  }
}
