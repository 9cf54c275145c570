// The connection to etcd: one channel per member, one of them in use; login; time limits; retries at another member
// when one is unavailable. Every request may be sent twice: callers must only send requests for which that is harmless.

import { type CallOptions, Client, type ClientDuplexStream, Metadata } from '@grpc/grpc-js';
import { backoffMs } from '../../base/backoff.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import { giveBack } from '../../base/give-back.ts';
import type { Prng } from '../../base/prng.ts';
import { StoreError } from '../store.ts';
import { type EtcdFault, faultOf, storeErrorOf } from './etcd-errors.ts';
import { type CallName, type Calls, methods, watchMethod, type WatchResponse } from './etcd-rpc.ts';
import type { EtcdAddress } from './etcd-url.ts';
import { memberSecurity } from './member-security.ts';

export interface CallLimits {
  /** How long it is retried while etcd is unavailable, when that is shorter than for others. */
  readonly patienceMs?: number;
  /**
   * For commits: called when a request was sent and not answered, before it is sent again. Only then may the outcome be
   * `unknown`.
   */
  readonly onDoubt?: () => void;
}

export interface Etcd {
  /** The name in messages. */
  readonly name: string;
  /** Retried while etcd is unavailable. Rejects with `StoreError`, or with `Forgotten`. */
  call<N extends CallName>(
    name: N,
    request: Calls[N]['request'],
    attempted: string,
    options?: CallLimits,
  ): Promise<Calls[N]['response']>;
  /** Watches one key from now on, until the watch breaks: then `ended` is called once, unless the watch was stopped. */
  watch(
    key: Buffer,
    on: { readonly answer: (answer: WatchResponse) => void; readonly ended: (error: unknown) => void },
  ): { stop(): void };
  close(): void;
}

/** etcd no longer has the requested revision. */
export class Forgotten extends Error {
  override name = 'Forgotten';
}

export interface EtcdClientOptions {
  readonly address: EtcdAddress;
  readonly clock: Clock;
  readonly prng: Prng;
  /** How long a request is retried while etcd is unavailable. */
  readonly patienceMs: number;
}

/** Elections take a second or two, and so may a slow disk; after this time another member is tried. */
const answerMsMax = 4_000;
const retryDelay = { delayMsMin: 50, delayMsMax: 500 };

const channelOptions = {
  'grpc.max_receive_message_length': -1, // responses are limited by the requests
  'grpc.max_send_message_length': -1,
  'grpc-node.flow_control_window': 16 * 1024 * 1024, // a page of a list: it arrives while the previous one is decoded
  'grpc.keepalive_time_ms': 10_000, // detects a silent member; etcd accepts pings from 5 s on
  'grpc.keepalive_timeout_ms': 5_000,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  'grpc.enable_retries': 0, // own retries use other members
  'grpc.enable_http_proxy': 0,
  'grpc.service_config_disable_resolution': 1,
};

export class EtcdClient implements Etcd {
  readonly name: string;
  readonly #options: EtcdClientOptions;
  readonly #members: readonly Client[];
  #current = 0;
  #token: string | undefined;
  #loggingIn: Promise<void> | undefined;
  #closed = false;

  constructor(options: EtcdClientOptions) {
    this.#options = options;
    const { endpoints, tls, name } = options.address;
    this.name = name;
    this.#members = endpoints.map((endpoint) => {
      const security = memberSecurity(endpoint, tls);
      return new Client(endpoint, security.credentials, { ...channelOptions, ...security.options });
    });
  }

  /** A user and a password are set, but etcd does not require them. */
  get loginIsVain(): boolean {
    return this.#token === '';
  }

  async call<N extends CallName>(
    name: N,
    request: Calls[N]['request'],
    attempted: string,
    { patienceMs = this.#options.patienceMs, onDoubt }: CallLimits = {},
  ): Promise<Calls[N]['response']> {
    const { clock, prng } = this.#options;
    const until = clock.monotonicMs() + Math.min(patienceMs, this.#options.patienceMs);
    let maybeDone = false;
    let renewed = false;
    for (let attempt = 0; ; attempt++) {
      const member = this.#current;
      try {
        if (name !== 'authenticate') await this.#logIn();
        return await this.#send(member, name, request);
      } catch (error) {
        if (error instanceof StoreError) throw error; // from the login
        const found = faultOf(error);
        if (found.maybeDone && onDoubt) {
          maybeDone = true;
          onDoubt();
        }
        if (found.fault === 'token' && this.#options.address.login && !renewed) {
          renewed = true;
          this.#token = undefined;
          continue;
        }
        if (found.fault === 'forgotten') throw new Forgotten(found.text, { cause: error });
        if (found.fault === 'away') this.#leave(member); // even when this request gives up: the next one starts elsewhere
        if (found.fault !== 'away' || this.#closed || clock.monotonicMs() >= until)
          throw storeErrorOf(
            this.#closed ? { ...found, text: 'the store was closed meanwhile' } : found,
            { attempted, name: this.name },
            { cause: error, outcome: maybeDone ? 'unknown' : 'none' },
          );
        // The other members are tried immediately, then all of them after a delay.
        const round = Math.floor(attempt / this.#members.length);
        if ((attempt + 1) % this.#members.length === 0) await sleep(clock, backoffMs(round, retryDelay, prng));
      }
    }
  }

  watch(
    key: Buffer,
    on: { readonly answer: (answer: WatchResponse) => void; readonly ended: (error: unknown) => void },
  ): { stop(): void } {
    const member = this.#current;
    let over = false;
    const end = (error: unknown): void => {
      if (over) return;
      over = true;
      stream.cancel();
      this.#leave(member);
      on.ended(error);
    };
    const stream = this.#openStream(member);
    stream.on('data', (answer: WatchResponse) => {
      if (over) return;
      if (answer.canceled) end(new Error(`etcd ended the watch: ${answer.cancelReason}`));
      else on.answer(answer);
    });
    stream.on('error', end);
    stream.on('end', () => end(new Error('etcd ended the watch')));
    stream.write({ createRequest: { key } });
    return {
      stop: () => {
        over = true;
        stream.cancel();
      },
    };
  }

  close(): void {
    this.#closed = true;
    for (const member of this.#members) member.close();
  }

  #send<N extends CallName>(index: number, name: N, request: Calls[N]['request']): Promise<Calls[N]['response']> {
    const { path, requestSerialize, responseDeserialize } = methods[name];
    const { clock, patienceMs } = this.#options;
    const options: CallOptions = { deadline: clock.nowMs() + Math.min(answerMsMax, patienceMs) };
    let sent: Buffer | undefined;
    const serialize = (message: object): Buffer => (sent = requestSerialize(message));
    return new Promise((resolve, reject) => {
      this.#member(index).makeUnaryRequest(
        path,
        serialize,
        responseDeserialize,
        request,
        this.#metadata(name),
        options,
        (error, response) => {
          if (sent) giveBack(sent); // gRPC has sent a copy; or, after the deadline, it sends nothing, or an empty message that changes nothing
          if (error) reject(error);
          else resolve(response as Calls[N]['response']); // the codec: etcd-rpc.ts describes it so
        },
      );
    });
  }

  #openStream(index: number): ClientDuplexStream<object, WatchResponse> {
    const { path, requestSerialize, responseDeserialize } = watchMethod;
    const stream: unknown = this.#member(index).makeBidiStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      this.#metadata('watch'),
    );
    return stream as ClientDuplexStream<object, WatchResponse>; // the codec: etcd-rpc.ts describes it so
  }

  #metadata(name: CallName | 'watch'): Metadata {
    const metadata = new Metadata();
    // A member without a leader returns an error instead of waiting.
    metadata.set('hasleader', 'true');
    if (this.#token && name !== 'authenticate') metadata.set('token', this.#token);
    return metadata;
  }

  async #logIn(): Promise<void> {
    const { login } = this.#options.address;
    if (!login || this.#token !== undefined) return;
    this.#loggingIn ??= this.#authenticate(login.user, login.password).finally(() => {
      this.#loggingIn = undefined;
    });
    await this.#loggingIn;
  }

  async #authenticate(user: string, password: string): Promise<void> {
    try {
      this.#token = (await this.#send(this.#current, 'authenticate', { name: user, password })).token;
    } catch (error) {
      const found: EtcdFault = faultOf(error);
      if (/not enabled/.test(found.text)) {
        this.#token = ''; // no login required there
        return;
      }
      if (found.fault === 'away') throw error;
      throw storeErrorOf(found, { attempted: `login of user "${user}"`, name: this.name }, { cause: error });
    }
  }

  #member(index: number): Client {
    const member = this.#members[index];
    if (!member) throw new Error(`etcd has no member ${index}`);
    return member;
  }

  /** Switches to the next member, unless another request has done so already. */
  #leave(member: number): void {
    if (this.#current === member) this.#current = (member + 1) % this.#members.length;
  }
}
