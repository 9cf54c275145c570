// The token that a host's agent needs, for operators. The host need not exist yet: its agent makes it. Asked twice it is the same.

import { parse } from '../../../../api/parse.ts';
import { Name } from '../../../../api/resources/metadata.ts';
import type { HostToken } from '../../../../api/host-token.ts';
import { hostRoutes } from '../../../../api/routes/hosts.ts';
import { bind } from '../bind.ts';
import type { Route } from '../../route.ts';
import { hostTokenOf } from '../../tokens.ts';
import type { Decider } from '../../../decide.ts';
import { comingHostGeneration } from '../../../../core/operations/access/host-generation.ts';

/** `secret`: that of the fleet, from which hosts' tokens are made. */
export function hostTokenRoute(secret: Uint8Array, { cache }: Pick<Decider, 'cache'>): Route {
  return bind(hostRoutes.token, ({ params }) => {
    const host = parse(Name, params.host, 'host');
    return {
      status: 200,
      json: { host, token: hostTokenOf(secret, host, comingHostGeneration(cache, host)) } satisfies HostToken,
    };
  });
}
