import { expect, it } from 'vitest';
import { forwardsOf, isAccepted } from './forwards.ts';

it.each([
  ['no card', '', []],
  [
    'no forward',
    'Hub -1 (hostnet0):\r\n  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n',
    [],
  ],
  [
    'both protocols, and connections that are none',
    `Hub -1 (hostnet0):\r
  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r
  TCP[HOST_FORWARD]  17       127.0.0.1 23456       10.0.2.15    22     0     0\r
  UDP[HOST_FORWARD]  18               * 23457       10.0.2.15    53     0     0\r
  TCP[ESTABLISHED]   19       127.0.0.1 23456       127.0.0.1 51234     0     0\r
`,
    ['tcp 127.0.0.1 23456 22', 'udp * 23457 53'],
  ],
])('of what QEMU says it reads %s', (_, said, forwards) => {
  expect([...forwardsOf(said)]).toEqual(forwards);
});

it.each([
  ['nothing of it', '', false],
  ['the way alone', '  TCP[HOST_FORWARD]  17       127.0.0.1 23456       10.0.2.15    80     0     0', false],
  ['asked', '  TCP[SYN_SENT]      19       127.0.0.1 23456       10.0.2.15    80     0     0', false],
  ['refused', '  TCP[CLOSED]        19       127.0.0.1 23456       10.0.2.15    80     0     0', false],
  ['accepted', '  TCP[ESTABLISHED]   19       127.0.0.1 23456       10.0.2.15    80     0     0', true],
  [
    'accepted, and closed by the guest',
    '  TCP[CLOSE_WAIT]    19       127.0.0.1 23456       10.0.2.15    80     0     0',
    true,
  ],
  ['accepted by another way', '  TCP[ESTABLISHED]   19       127.0.0.1 23457       10.0.2.15    80     0     0', false],
])('of a connection to the guest it reads: %s', (_, said, accepted) => {
  expect(isAccepted(`  Protocol[State]    FD  Source Address  Port\r\n${said}\r\n`, 23_456)).toBe(accepted);
});
