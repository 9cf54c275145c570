// The protocol between a client and the host of a guest over one WebSocket. The control plane only forwards it and never interprets it.
//
//   GET /v1/instances/{name}/console?offset=N&history=N    the serial console: bytes both ways
//   GET /v1/instances/{name}/exec?session=S&received=N     a command: started by `ExecRequest`, or resumed at `N`; or a copy (`CopyRequest`)
//   GET /v1/instances/{name}/ports/{port}                  a TCP connection to a port of the guest: bytes both ways
//   GET /v1/instances/{name}/vnc                           its screen, as RFB (RFC 6143): bytes both ways
//
// Binary messages are bytes. With exec the first byte of each is the number of its stream. Text messages are JSON in the forms below.

import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;

/** `Sec-WebSocket-Protocol` of all of them; browsers add a second one, `berth.ticket.<ticket>`. */
export const accessSubprotocol = 'berth.v1';

export const execStreams = { stdin: 0, stdout: 1, stderr: 2 } as const;

/** Amount of output kept for a client that reconnects; the same as in Orchard. */
export const execReplayBytes = 4 * 1024 * 1024;

const TerminalSize = Type.Object(
  { columns: Type.Integer({ minimum: 1, maximum: 10_000 }), rows: Type.Integer({ minimum: 1, maximum: 10_000 }) },
  closed,
);

/** The first message of a client that starts a command. */
export const ExecRequest = Type.Object(
  {
    command: Type.Array(Type.String({ maxLength: 131_072 }), { minItems: 1, maxItems: 4096 }),
    env: Type.Optional(
      Type.Record(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,255}$' }), Type.String({ maxLength: 131_072 }), {
        maxProperties: 1024,
        additionalProperties: false,
      }),
    ),
    workingDirectory: Type.Optional(Type.String({ maxLength: 4096 })),
    /** Of an instance with several; default: the first. */
    container: Type.Optional(Type.String({ maxLength: 63 })),
    /** Whether the client will send input. */
    stdin: Type.Boolean(),
    /** With a terminal, output and errors are one stream. */
    terminal: Type.Optional(TerminalSize),
  },
  closed,
);
export type ExecRequest = Static<typeof ExecRequest>;

/**
 * The first message of a client that copies. `look`: describes `path`, as JSON on standard output (`CopyLook`). `from`:
 * sends it as a tar archive on standard output. `to`: unpacks a tar archive from standard input into the directory
 * `path`. Errors go to standard error, with exit code 1.
 */
export const CopyRequest = Type.Object(
  {
    copy: Type.Enum(['look', 'from', 'to']),
    path: Type.String({ pattern: '^/[^\\u0000]*$', maxLength: 4096, description: 'absolute, in the container' }),
    /** Of an instance with several; default: the first. */
    container: Type.Optional(Type.String({ maxLength: 63 })),
  },
  closed,
);
export type CopyRequest = Static<typeof CopyRequest>;

/** What is at a path. A link to a directory counts as a directory. */
export const CopyLook = Type.Object({ kind: Type.Enum(['file', 'directory', 'other', 'nothing']) }, closed);
export type CopyLook = Static<typeof CopyLook>;

/** Later messages of a client. `end`: no more input follows. */
export const ClientControl = Type.Union([
  Type.Object({ type: Type.Literal('end') }, closed),
  Type.Object({ type: Type.Literal('resize'), ...TerminalSize.properties }, closed),
  Type.Object({ type: Type.Literal('close') }, { ...closed, description: 'exec: end the command and forget it' }),
]);
export type ClientControl = Static<typeof ClientControl>;

/** Messages of a host. The last one before it closes is `end`, `exit` or `error`; without one the connection broke. */
export const HostControl = Type.Union([
  Type.Object({ type: Type.Literal('end') }, { ...closed, description: 'no more output from the guest' }),
  Type.Object(
    { type: Type.Literal('offset'), offset: Type.Integer() },
    { ...closed, description: 'console: where in its log the next byte is' },
  ),
  Type.Object(
    { type: Type.Literal('started'), session: Type.String(), inputBytes: Type.Integer() },
    { ...closed, description: 'exec: the session for a reconnect, and the number of input bytes received' },
  ),
  Type.Object(
    { type: Type.Literal('exit'), code: Type.Integer(), signal: Type.Optional(Type.Integer()) },
    { ...closed, description: 'exec: how it ended' },
  ),
  Type.Object(
    {
      type: Type.Literal('error'),
      code: Type.String(),
      message: Type.String(),
      /**
       * `NeedsSsh`: the host does not support it, ssh does. `NoConsole` (in `details.reason` of the refusal): only a
       * log exists. `Suspended` (likewise): resume the instance first.
       */
      reason: Type.Optional(Type.String()),
    },
    closed,
  ),
]);
export type HostControl = Static<typeof HostControl>;

/** `POST /v1/instances/{name}/tickets`. */
export const TicketRequest = Type.Object(
  {
    way: Type.String({
      pattern: '^(console|exec|vnc|ports/\\d{1,5})$',
      description: 'console, exec, vnc or ports/<port>',
    }),
  },
  closed,
);

export const Ticket = Type.Object(
  {
    ticket: Type.String(),
    protocols: Type.Array(Type.String(), { description: 'the subprotocol to offer for the WebSocket' }),
    expiresAtMs: Type.Integer(),
  },
  closed,
);
