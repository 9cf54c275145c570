// The audit log as the API returns it: one record per line of a server's log.

import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;

export const AuditOutcome = Type.Enum(['begun', 'done', 'refused', 'failed', 'unknown']);
export type AuditOutcome = Static<typeof AuditOutcome>;

export const AuditFace = Type.Enum(['http', 'mcp', 'amqp', 'forge', 'placement', 'server']);
export type AuditFace = Static<typeof AuditFace>;

export const AuditRecord = Type.Object(
  {
    seq: Type.Integer({ description: 'counts the lines of this server' }),
    prev: Type.String({ description: 'SHA-256 of the line before' }),
    time: Type.String(),
    server: Type.String(),
    request: Type.Optional(Type.String({ description: 'id of the request' })),
    trace: Type.Optional(Type.String({ description: 'id of the trace of the request: 32 hexadecimal digits' })),
    who: Type.Optional(Type.String({ description: '`admin`, `token/ci`, `host/h1`; absent: no valid credential' })),
    tokenId: Type.Optional(Type.String()),
    user: Type.Optional(Type.String({ description: '`provider/subject` of the login that the token is from' })),
    address: Type.Optional(Type.String()),
    face: AuditFace,
    verb: Type.String(),
    kind: Type.Optional(Type.String()),
    project: Type.Optional(Type.String()),
    object: Type.Optional(Type.String({ description: 'its name' })),
    objectId: Type.Optional(Type.String()),
    body: Type.Optional(Type.String({ description: "keyed hash of the request's body" })),
    outcome: AuditOutcome,
    reason: Type.Optional(Type.String({ description: 'error code' })),
    revision: Type.Optional(Type.Integer()),
    count: Type.Optional(Type.Integer({ description: 'number of events that this line stands for' })),
    note: Type.Optional(Type.Integer({ description: 'number of the note that was committed with the change' })),
    settles: Type.Optional(Type.Integer({ description: 'seq of the line whose outcome was unknown' })),
    recovered: Type.Optional(Type.Boolean({ description: 'made from the store after a crash' })),
    head: Type.Optional(Type.String()),
  },
  closed,
);
export type AuditRecord = Static<typeof AuditRecord>;

export const AuditLogPage = Type.Object(
  {
    server: Type.String({ description: 'each server has its own log; this is the log of this one' }),
    items: Type.Array(AuditRecord, { description: 'oldest first' }),
    continue: Type.Optional(Type.String({ description: 'returns the next page' })),
    servers: Type.Array(Type.String(), { description: 'addresses of the servers of the fleet that are known' }),
  },
  closed,
);
export type AuditLogPage = Static<typeof AuditLogPage>;

export const AuditFault = Type.Object(
  {
    code: Type.Enum(['Edited', 'LineMissing', 'FileMissing', 'TailCut', 'Damaged', 'Replaced']),
    file: Type.Optional(Type.String()),
    seq: Type.Optional(Type.Integer()),
    message: Type.String(),
  },
  closed,
);
export type AuditFault = Static<typeof AuditFault>;

export const AuditLogCheck = Type.Object(
  {
    server: Type.String(),
    files: Type.Integer(),
    lines: Type.Integer(),
    firstSeq: Type.Integer(),
    lastSeq: Type.Integer(),
    headSeq: Type.Integer({ description: 'the newest line that the store knows of; 0: none yet' }),
    faults: Type.Array(AuditFault),
    servers: Type.Array(Type.String()),
  },
  closed,
);
export type AuditLogCheck = Static<typeof AuditLogCheck>;
