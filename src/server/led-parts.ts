// The parts towards other systems that run on the leader only. A new part is a line here; a part that is not configured is not created.

import type { Logger } from '../base/log.ts';
import type { WebFetch } from '../base/fetch-json.ts';
import type { Decider } from './decide.ts';
import { type FenceHook, Fencing } from './fencing/fencing.ts';
import type { ForgeParts } from './intake/forges/forges.ts';
import { Inventories } from './inventory/inventories.ts';
import { type InventorySettings, noInventorySettings } from './inventory/inventory-settings.ts';
import type { Fence } from './leadership.ts';
import type { EventBus, EventBusParts } from './outbox/bus/event-bus.ts';
import { CommitStatuses } from './outbox/statuses/statuses.ts';
import type { Post } from './outbox/webhooks/post.ts';
import { Webhooks } from './outbox/webhooks/webhooks.ts';
import type { OutsidePart } from './outside.ts';
import { Spares } from './spares/spares.ts';
import type { SparesParts } from './spares/spare-task.ts';
import { BootTraces } from './tracing/boot-traces.ts';

export interface LedPart extends OutsidePart {
  /** Called when this process begins to lead; it leads as long as `fence` holds. */
  lead(fence: Fence): void;
  /** Called before another process may lead. */
  stepDown(): void;
  stop(): Promise<void>;
}

export interface LedSettings {
  /** Forges that deliver webhooks; absent: none. */
  readonly forges?: ForgeParts;
  /** Sends to receivers of webhooks; absent: nothing is sent. */
  readonly post?: Post;
  /** Asks the sources of inventories; absent: none is polled. */
  readonly fetch?: WebFetch;
  /** Files and credentials of inventories. Default: none. */
  readonly inventorySettings?: InventorySettings;
  /** Sends the events of the fleet to brokers; absent: none is configured. */
  readonly eventBus?: ((parts: EventBusParts) => EventBus) | undefined;
  /** Powers hosts off; absent: nothing does. */
  readonly fenceHook?: FenceHook | undefined;
  /** Makes spares, and asks whether they are ready; absent: only instances are spares, and nothing is asked. */
  readonly spares?: Omit<SparesParts, 'decider' | 'log'> | undefined;
  /** URL of a collector of OpenTelemetry; absent: no traces are sent. */
  readonly tracing?: string | undefined;
  readonly version: string;
}

interface Common {
  readonly decider: Decider;
  readonly log: Logger;
  readonly leads: () => boolean;
}

export function ledParts(settings: LedSettings, { decider, log, leads }: Common): readonly LedPart[] {
  const { fetch, post, eventBus, spares, forges, fenceHook, tracing, version } = settings;
  const { inventorySettings = noInventorySettings } = settings;
  const parts: readonly (LedPart | undefined)[] = [
    fetch && new Inventories({ decider, fetch, settings: inventorySettings, leads, log }),
    post && new Webhooks({ decider, post, log, version }),
    eventBus?.({ decider, log }),
    spares && new Spares({ ...spares, decider, log }),
    forges && new CommitStatuses({ decider, forges, leads, log }),
    fenceHook && new Fencing({ decider, hook: fenceHook, log }),
    fetch && tracing !== undefined ? new BootTraces({ decider, fetch, url: tracing, version, log }) : undefined,
  ];
  return parts.filter((part) => part !== undefined);
}
