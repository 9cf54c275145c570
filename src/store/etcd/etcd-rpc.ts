// The part of etcd's API that the store uses, as data: message types with field numbers, so that no file is loaded, and
// their TypeScript types. Unused fields are omitted, because each costs time in every message. 64-bit numbers are
// decimal strings.

import { fromJSON, type MethodDefinition } from '@grpc/proto-loader';
import {
  decodeRange,
  decodeTxn,
  type Header,
  type Int64,
  type KeyValue,
  type RangeResponse,
  type TxnResponse,
} from './answers.ts';
import { type DeleteRangeRequest, encodeTxn, type PutRequest, type RangeRequest, type TxnRequest } from './requests.ts';

export interface WatchResponse {
  readonly created: boolean;
  readonly canceled: boolean;
  readonly cancelReason: string;
  readonly events: readonly { readonly kv: KeyValue | null }[];
}

/** Request and response of each call. */
export interface Calls {
  readonly range: { readonly request: RangeRequest; readonly response: RangeResponse };
  /** A read-only transaction: all of it at one revision. */
  readonly read: { readonly request: TxnRequest; readonly response: TxnResponse };
  readonly txn: { readonly request: TxnRequest; readonly response: TxnResponse };
  readonly put: { readonly request: PutRequest; readonly response: { readonly header: Header | null } };
  readonly deleteRange: {
    readonly request: DeleteRangeRequest;
    readonly response: { readonly header: Header | null };
  };
  /** Compacts etcd's own history before one of its revisions. */
  readonly compact: { readonly request: { readonly revision: Int64 }; readonly response: object };
  readonly status: { readonly request: object; readonly response: { readonly version: string } };
  readonly authenticate: {
    readonly request: { readonly name: string; readonly password: string };
    readonly response: { readonly token: string };
  };
}

export type CallName = keyof Calls;

type Field = readonly [id: number, type: string, repeated?: 'repeated'];

function message(fields: Readonly<Record<string, Field>>, oneof?: readonly string[]) {
  const entries = Object.entries(fields).map(([name, [id, type, rule]]) => [name, { id, type, ...(rule && { rule }) }]);
  return { fields: Object.fromEntries(entries), ...(oneof && { oneofs: { one: { oneof: [...oneof] } } }) };
}

function method(requestType: string, responseType: string) {
  return { requestType, responseType, comment: '' };
}

/** From rpc.proto and kv.proto of etcd 3.4. */
const descriptor: Parameters<typeof fromJSON>[0] = {
  nested: {
    mvccpb: {
      nested: {
        KeyValue: message({ key: [1, 'bytes'], modRevision: [3, 'int64'], value: [5, 'bytes'] }),
        Event: message({ kv: [2, 'KeyValue'] }),
      },
    },
    etcdserverpb: {
      nested: {
        ResponseHeader: message({ revision: [3, 'int64'] }),
        RangeRequest: message({
          key: [1, 'bytes'],
          rangeEnd: [2, 'bytes'],
          limit: [3, 'int64'],
          revision: [4, 'int64'],
          keysOnly: [8, 'bool'],
        }),
        RangeResponse: message({}), // read by answers.ts
        PutRequest: message({ key: [1, 'bytes'], value: [2, 'bytes'] }),
        DeleteRangeRequest: message({ key: [1, 'bytes'], rangeEnd: [2, 'bytes'] }),
        HeaderOnly: message({ header: [1, 'ResponseHeader'] }),
        TxnRequest: message({}), // written by requests.ts
        TxnResponse: message({}), // read by answers.ts
        CompactionRequest: message({ revision: [1, 'int64'] }),
        WatchCreateRequest: message({ key: [1, 'bytes'] }),
        WatchRequest: message({ createRequest: [1, 'WatchCreateRequest'] }, ['createRequest']),
        WatchResponse: message({
          created: [3, 'bool'],
          canceled: [4, 'bool'],
          cancelReason: [6, 'string'],
          events: [11, 'mvccpb.Event', 'repeated'],
        }),
        StatusRequest: message({}),
        StatusResponse: message({ version: [2, 'string'] }),
        AuthenticateRequest: message({ name: [1, 'string'], password: [2, 'string'] }),
        AuthenticateResponse: message({ token: [2, 'string'] }),
        KV: {
          methods: {
            Range: method('RangeRequest', 'RangeResponse'),
            Txn: method('TxnRequest', 'TxnResponse'),
            Put: method('PutRequest', 'HeaderOnly'),
            DeleteRange: method('DeleteRangeRequest', 'HeaderOnly'),
            Compact: method('CompactionRequest', 'HeaderOnly'),
          },
        },
        Watch: {
          methods: {
            Watch: { ...method('WatchRequest', 'WatchResponse'), requestStream: true, responseStream: true },
          },
        },
        Maintenance: { methods: { Status: method('StatusRequest', 'StatusResponse') } },
        Auth: { methods: { Authenticate: method('AuthenticateRequest', 'AuthenticateResponse') } },
      },
    },
  },
};

const loaded = fromJSON(descriptor, { longs: String, enums: String, arrays: true, defaults: true });

function methodOf(service: string, name: string): MethodDefinition<object, object> {
  const definition = loaded[`etcdserverpb.${service}`];
  const method = definition && Object.hasOwn(definition, name) ? Reflect.get(definition, name) : undefined;
  if (!method) throw new Error(`the description of etcd's API lacks ${service}/${name}`);
  return method as MethodDefinition<object, object>; // the codec: the loader makes one for each method above
}

const range = { ...methodOf('KV', 'Range'), responseDeserialize: decodeRange };
const txn = {
  ...methodOf('KV', 'Txn'),
  requestSerialize: (request: object) => encodeTxn(request as TxnRequest), // `Calls`: it is one
  responseDeserialize: decodeTxn,
};

export const methods: Readonly<Record<CallName, MethodDefinition<object, object>>> = {
  range,
  read: txn,
  txn,
  put: methodOf('KV', 'Put'),
  deleteRange: methodOf('KV', 'DeleteRange'),
  compact: methodOf('KV', 'Compact'),
  status: methodOf('Maintenance', 'Status'),
  authenticate: methodOf('Auth', 'Authenticate'),
};

export const watchMethod = methodOf('Watch', 'Watch');
