// Asks once whether a spare is ready, as its request says.

import { isIPv6 } from 'node:net';
import type { Clock } from '../../../base/clock.ts';
import type { Probe, ProbeAnswer } from '../provisioner.ts';
import type { ClusterConfig } from '../provisioners/provisioner-config.ts';
import { probeHttp } from './http-probe.ts';
import { probeNode } from './node-probe.ts';
import type { ProbeGuard } from './probe-guard.ts';
import { tcpConnect } from './tcp-connect.ts';

export interface ProbeParts {
  readonly clusters: Readonly<Record<string, ClusterConfig>>;
  readonly guard: ProbeGuard;
  readonly clock: Clock;
}

export function createProbe({ clusters, guard, clock }: ProbeParts): Probe {
  const never = (message: string): ProbeAnswer => ({ ready: false, message, failed: true });
  return async ({ http, tcp, kubernetes }, { name, address, createdAtMs }, often) => {
    if (http !== undefined) {
      const { status } = http;
      const url = filledIn(http.url, { name, address });
      if (url === undefined) return never('the spare has no address, and the URL asks for it');
      return probeHttp(
        { guard, clock },
        { url, ...(status === undefined ? {} : { status }), ownAddress: address, ...often },
      );
    }
    if (tcp !== undefined) {
      const hostname = tcp.address ?? address;
      if (hostname === undefined) return never('the spare has no address; name one in ready.tcp.address');
      const place = { hostname, port: tcp.port, ownAddress: address };
      const why = guard.whyNotLiteral(place);
      if (why !== undefined) return never(why);
      const fault = await tcpConnect({ guard, clock }, { place, ...often });
      const message = `port ${tcp.port} of ${hostname}${fault === undefined ? ' is open' : `: ${fault}`}`;
      return { ready: fault === undefined, message };
    }
    if (kubernetes !== undefined) {
      const { cluster, node = name } = kubernetes;
      const config = Object.hasOwn(clusters, cluster) ? clusters[cluster] : undefined;
      if (config === undefined) return never(`no server has a cluster "${cluster}" in its configuration (kubernetes)`);
      return probeNode(clock, config, { cluster, node: { name: node, createdAfterMs: createdAtMs }, ...often });
    }
    return { ready: true, message: 'nothing is asked' };
  };
}

/** Undefined: it needs an address, and there is none. */
function filledIn(url: string, { name, address }: { readonly name: string; readonly address: string | undefined }) {
  if (address === undefined && url.includes('{address}')) return undefined;
  const host = address !== undefined && isIPv6(address) ? `[${address}]` : (address ?? '');
  return url.replaceAll('{address}', () => host).replaceAll('{name}', () => encodeURIComponent(name));
}
