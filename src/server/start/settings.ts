// Reads and checks everything that a server needs before it opens the store: a fault ends the start here.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { environment, randomSecret, systemFetch } from '../../base/system.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import { placeOf } from '../../store/open.ts';
import { isLocal, listenAddress, placementAddress, policyOf, readTls, speaksTls } from '../checked-config.ts';
import type { ServerConfig } from '../config.ts';
import { checkListen } from '../http/serve.ts';
import { readForges } from '../intake/forges/forges.ts';
import { readEventBus } from '../outbox/bus/start-event-bus.ts';
import { readInventorySettings } from '../inventory/inventory-settings.ts';
import { readLogin } from '../oidc/start-login.ts';
import { readFenceHook } from '../fencing/fence-config.ts';
import { readSpareMeans } from '../spares/provisioners/index.ts';
import { refuseMissingStore } from '../storage/missing-store.ts';
import { warnOfOpenFiles } from './warn-of-open-files.ts';
import { checkApplied } from './apply-configuration.ts';

export type Settings = Awaited<ReturnType<typeof readSettings>>;

/** Throws `InvalidRequest` or another error with advice; nothing is left open, and nothing is written but the data directory. */
export async function readSettings(
  config: ServerConfig,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
) {
  const listen = listenAddress(config);
  await readTls(config);
  const secure = speaksTls(config);
  warnOfPlainHttp(config, { secure, log });
  await warnOfOpenFiles(config, log);
  const forges = await readForges(config, { environment: environment(), fetch: systemFetch });
  const login = await readLogin(config, { fetch: systemFetch, clock, log, randomSecret });
  const eventBus = await readEventBus(config);
  const inventorySettings = await readInventorySettings(config);
  const policy = policyOf(config);
  await checkApplied(config, policy);
  const placementListen = placementAddress(config);
  if (placementListen !== undefined) await checkListen(placementListen, 'placementListen');
  await checkListen(listen); // before anything is written to a store that other servers may use too
  await mkdir(config.dataDirectory, { recursive: true, mode: 0o700 });
  const storeUrl = config.store ?? `sqlite:${join(config.dataDirectory, 'berth.db')}`;
  const spares = await readSpareMeans(config, { clock, alone: /^(sqlite|memory):/.test(storeUrl) });
  const fenceHook = await readFenceHook(config.fencing, clock);
  const place = await placeOf(storeUrl);
  refuseMissingStore(storeUrl, config);
  const forFleet = { policy, eventBus, inventorySettings, spares, fenceHook };
  return { listen, placementListen, secure, storeUrl, place, forges, login, forFleet };
}

function warnOfPlainHttp(
  config: ServerConfig,
  { secure, log }: { readonly secure: boolean; readonly log: Logger },
): void {
  if (config.insecure) log.warn('the setting "insecure" is now called "insecureHttp"');
  if (!secure && !isLocal(config))
    log.warn('this server speaks plain HTTP to other machines: every token can be read on the network', {
      listen: config.listen,
    });
}
