// The event buses of the configuration. Nothing of a broker's library is loaded unless one of its kind is configured.

import type { ServerConfig } from '../../config.ts';
import type { OpenBus } from './bus.ts';
import type { BusSettings } from './bus-settings.ts';
import type { EventBus, EventBusParts } from './event-bus.ts';

/** Throws `InvalidRequest`, which names the field. A broker that is away is tried again later. */
export async function readEventBus({
  eventBus,
}: ServerConfig): Promise<((parts: EventBusParts) => EventBus) | undefined> {
  if (eventBus.length === 0) return undefined;
  const [{ busSettingsOf }, { EventBus }] = await Promise.all([import('./bus-settings.ts'), import('./event-bus.ts')]);
  const buses = await Promise.all(
    busSettingsOf(eventBus).map(async (settings) => ({ name: settings.name, open: await openerOf(settings) })),
  );
  return (parts) => new EventBus(buses, { ...parts, log: parts.log.with({ part: 'event-bus' }) });
}

async function openerOf(settings: BusSettings): Promise<OpenBus> {
  const { openNats } = await import('./nats/nats-bus.ts');
  return () => openNats(settings);
}
