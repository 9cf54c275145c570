// Guards an agent link. The control plane is the HTTP/2 client on it, so a hostile host can attack the client side: frames that no agent sends
// end the link, and so does a missing answer to a ping.

import type { ClientHttp2Session } from 'node:http2';
import type { Clock, Timer } from '../../../base/clock.ts';
import { Rates } from '../../limits/rates.ts';

/** An agent pings every ten seconds. */
const pingRate = { perSecond: 1, burst: 20 };
/** An agent sends its settings once. */
const settingsMax = 8;
const pingMs = 30_000;

export class UnlikeAnAgent {
  readonly #pings: Rates;
  readonly #end: (what: string) => void;
  #settings = 0;

  /** Calls `end` with what the other side did wrong. */
  constructor(clock: Clock, end: (what: string) => void) {
    this.#pings = new Rates(pingRate, { clock, keysMax: 1 });
    this.#end = end;
  }

  watch(session: ClientHttp2Session): void {
    session.on('ping', () => {
      if (this.#pings.take('') > 0) this.#end('it pings without pause');
    });
    session.on('remoteSettings', () => {
      this.#settings += 1;
      if (this.#settings > settingsMax) this.#end('it changes its settings without pause');
    });
    session.on('origin', () => this.#end('it names origins'));
    session.on('altsvc', () => this.#end('it names other services'));
    session.on('stream', () => this.#end('it opens streams'));
  }
}

/** Ends a session on which no answer comes to a ping before the next. Returns a function that stops. */
export function keepAlive(session: ClientHttp2Session, clock: Clock): () => void {
  let timer: Timer;
  let answered = true;
  const look = (): void => {
    if (session.destroyed) return;
    if (!answered) return session.destroy();
    answered = false;
    if (!session.connecting) session.ping((error) => (answered = error === null));
    timer = clock.setTimer(pingMs, look, { background: true });
  };
  timer = clock.setTimer(pingMs, look, { background: true });
  return () => timer.cancel();
}
