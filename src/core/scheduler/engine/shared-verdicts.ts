// Shared verdicts: the verdicts of one kind of rules, by the key of the request. They are kept as long as a shape reads
// them, and longer where memory allows.

import type { ChangeLog } from './change-log.ts';
import type { Fleet } from '../fleet.ts';
import type { Plugin } from '../framework.ts';
import { Lanes } from './lanes.ts';
import type { Request } from '../request.ts';
import { Verdicts } from './shape.ts';
import { prepareRules } from './verdicts.ts';

export class SharedVerdicts {
  readonly #plugins: readonly Plugin[];
  readonly #fleet: Fleet;
  readonly #log: ChangeLog;
  readonly #most: number;
  readonly #byKey = new Map<string, Verdicts>();
  readonly #lanes: Lanes;

  /** `log`: the changes that may alter these verdicts. `most`: how many are kept beyond those in use. */
  constructor(plugins: readonly Plugin[], fleet: Fleet, log: ChangeLog, most: number) {
    this.#plugins = plugins;
    this.#fleet = fleet;
    this.#log = log;
    this.#most = most;
    this.#lanes = new Lanes(fleet.capacity);
  }

  /** As of the last update. */
  of(key: string, request: Request): Verdicts {
    let verdicts = this.#byKey.get(key);
    if (!verdicts) {
      if (this.#byKey.size >= this.#most) this.#dropUnread();
      const rules = prepareRules(this.#plugins, request, this.#fleet);
      const lane = this.#lanes.take();
      verdicts = new Verdicts({ key, rules, fleet: this.#fleet, log: this.#log, lane });
      this.#byKey.set(key, verdicts);
    }
    return verdicts;
  }

  #dropUnread(): void {
    for (const [key, { readers, lane }] of this.#byKey) {
      if (readers > 0) continue;
      this.#byKey.delete(key);
      this.#lanes.giveBack(lane);
    }
  }
}
