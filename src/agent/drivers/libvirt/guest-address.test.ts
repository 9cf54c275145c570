import { expect, it } from 'vitest';
import { addressOf } from './guest-address.ts';
import type { InterfaceAddresses } from './libvirt.ts';

const card = '52:54:00:3d:4e:5f';
const at = (macAddress: string, ...addresses: readonly string[]): InterfaceAddresses => ({
  name: 'eth0',
  macAddress,
  addresses: addresses.map((address) => ({ version: address.includes(':') ? 6 : 4, address, prefix: 24 })),
});

it.each([
  ['no interface', [], undefined],
  ['its own card', [at(card, '192.168.122.7')], '192.168.122.7'],
  ['its own card in capitals, as guests may write it', [at(card.toUpperCase(), '192.168.122.7')], '192.168.122.7'],
  ['the card of another', [at('52:54:00:00:00:01', '192.168.122.7')], undefined],
  ['an interface without a card', [{ ...at(card, '127.0.0.1'), macAddress: undefined }], undefined],
  ['what reaches nobody else', [at(card, '127.0.0.1', '169.254.1.1', 'fe80::1')], undefined],
  ['both families', [at(card, '2001:db8::7', '10.0.0.7')], '10.0.0.7'],
  ['IPv6 alone', [at(card, 'FE80::1', '2001:db8::7')], '2001:db8::7'],
])('of %s it takes the right one', (_, interfaces, address) => {
  const given = interfaces.map(({ macAddress, ...rest }) =>
    macAddress === undefined ? rest : { macAddress, ...rest },
  );
  expect(addressOf(given, card)).toBe(address);
});
