import { describe, expect, it } from 'vitest';
import { addressOf, type InterfaceAddresses, interfacesToldBy } from './interface-addresses.ts';

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
  ['what is no address', [at(card, 'localhost', '10.0.0.256', '$(reboot)')], undefined],
  ['both families', [at(card, '2001:db8::7', '10.0.0.7')], '10.0.0.7'],
  ['IPv6 alone', [at(card, 'FE80::1', '2001:db8::7')], '2001:db8::7'],
])('of %s it takes the right one', (_, interfaces, address) => {
  const given = interfaces.map(({ macAddress, ...rest }) =>
    macAddress === undefined ? rest : { macAddress, ...rest },
  );
  expect(addressOf(given, card)).toBe(address);
});

describe('what a guest agent says', () => {
  it('is read as it writes it', () => {
    const said = [
      {
        name: 'lo',
        'hardware-address': '00:00:00:00:00:00',
        'ip-addresses': [{ 'ip-address-type': 'ipv4', 'ip-address': '127.0.0.1', prefix: 8 }],
      },
      {
        name: 'eth0',
        'hardware-address': card,
        'ip-addresses': [
          { 'ip-address-type': 'ipv6', 'ip-address': '2001:db8::7', prefix: 64 },
          { 'ip-address-type': 'ipv4', 'ip-address': '10.0.0.7', prefix: 24 },
        ],
        statistics: {},
      },
    ];
    expect(addressOf(interfacesToldBy(said), card)).toBe('10.0.0.7');
  });

  it.each([
    ['nothing', undefined],
    ['no list', { name: 'eth0' }],
    ['other things than interfaces', [1, null, 'eth0', [], { 'hardware-address': card }]],
    ['addresses that are none', [{ 'hardware-address': card, 'ip-addresses': [{ 'ip-address': 7 }, 'x', null] }]],
  ])('may be %s', (_, said) => {
    expect(addressOf(interfacesToldBy(said), card)).toBeUndefined();
  });
});
