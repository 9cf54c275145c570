// The event buses of the configuration. Nothing of a broker's library is loaded unless one of its kind is configured.

import type { Clock } from '../../../base/clock.ts';
import type { Logger } from '../../../base/log.ts';
import type { ServerConfig } from '../../config.ts';
import type { Bus } from './bus.ts';
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
  return (given) => {
    const parts = { ...given, log: given.log.with({ part: 'event-bus' }) };
    const { clock } = parts.decider;
    return new EventBus(
      buses.map(({ name, open }) => ({ name, open: () => open({ clock, log: parts.log.with({ bus: name }) }) })),
      parts,
    );
  };
}

type Open = (parts: { readonly clock: Clock; readonly log: Logger }) => Promise<Bus>;

async function openerOf(settings: BusSettings): Promise<Open> {
  switch (settings.kind) {
    case 'nats': {
      const { openNats } = await import('./nats/nats-bus.ts');
      return () => openNats(settings);
    }
    case 'amqp': {
      const { openAmqp } = await import('./amqp/amqp-bus.ts');
      return (parts) => openAmqp(settings, parts);
    }
    case 'kafka': {
      const { openKafka } = await import('./kafka/kafka-bus.ts');
      return () => openKafka(settings);
    }
  }
}
