import { expect, it } from 'vitest';
import { forwardsOf } from './forwards.ts';

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
