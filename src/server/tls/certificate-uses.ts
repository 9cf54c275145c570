// What the heartbeats of hosts say about their certificates: which one a host uses, and, in answer, whether it needs another one now.

import { certificateHeader } from '../../api/trust/authority.ts';
import type { Principal } from '../../core/access/principal.ts';
import {
  isNewlyUsed,
  noteCertificateUsed,
  renewsForAuthority,
} from '../../core/operations/access/authority-rotation.ts';
import { type Decider, decideAndCommit } from '../decide.ts';
import { Rates } from '../limits/rates.ts';

/** A certificate takes a server some 3 ms: a fleet that renews leaves most of its time to others. */
const renewals = { perSecond: 50, burst: 50 } as const;

const renew = { [certificateHeader]: 'renew' } as const;

export class CertificateUses {
  readonly #decider: Decider;
  readonly #pace: Rates;

  constructor(decider: Decider) {
    this.#decider = decider;
    this.#pace = new Rates(renewals, { clock: decider.clock });
  }

  /** Headers of the answer to a host. */
  async noted(principal: Principal): Promise<Readonly<Record<string, string>>> {
    if (principal.kind !== 'host' || principal.serial === undefined) return {};
    const { host, serial } = principal;
    const { cache } = this.#decider;
    if (isNewlyUsed(cache, host, serial))
      await decideAndCommit(this.#decider, (snapshot) => noteCertificateUsed(snapshot, { host, serial }));
    return renewsForAuthority(cache, host) && this.#pace.take('') === 0 ? renew : {};
  }
}
