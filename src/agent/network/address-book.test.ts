import { describe, expect, it } from 'vitest';
import { checkPlace, createAddressBook, type NatGuest } from './address-book.ts';
import { parseSubnet, type Subnet } from './subnet.ts';

const small = parseSubnet('10.77.0.0/29') as Subnet;
const guest = (name: string) => ({ instanceId: name, uuid: name, directory: `/guests/${name}` });

describe('the address book', () => {
  it('gives out every address once, and none of the network’s own', () => {
    const book = createAddressBook(small);
    const given = ['a', 'b', 'c', 'd', 'e'].map((name) => book.reserve(guest(name)).address).sort();
    expect(given).toEqual(['10.77.0.2', '10.77.0.3', '10.77.0.4', '10.77.0.5', '10.77.0.6']); // .1 the gateway, .7 broadcast
    expect(() => book.reserve(guest('f'))).toThrow(
      'cannot give f an address: all 5 of 10.77.0.0/29 are taken; remove guests, or give the agent a larger natSubnet while it has none',
    );
    book.release('c');
    expect(given).toContain(book.reserve(guest('f')).address);
  });
  it('gives a guest the same place again, whoever came in between', () => {
    const book = createAddressBook(parseSubnet('10.77.0.0/16') as Subnet);
    const first = book.reserve(guest('a'));
    book.release('a');
    book.reserve(guest('b'));
    expect(book.reserve(guest('a'))).toEqual(first);
    expect(book.guests()).toHaveLength(2);
  });
  it('takes over what guests have already', () => {
    const book = createAddressBook(small);
    const place = createAddressBook(small).reserve(guest('a'));
    book.adopt({ ...place, ...guest('a') });
    expect(book.guestAt(place.address)?.instanceId).toBe('a');
    for (const name of ['b', 'c', 'd', 'e']) expect(book.reserve(guest(name)).address).not.toBe(place.address);
  });
  it('has cards of the local range, another for each life, and names that the kernel takes', () => {
    const book = createAddressBook(small);
    const one = book.reserve({ ...guest('inst_01'), uuid: 'life 1' });
    const two = book.reserve({ ...guest('inst_01'), uuid: 'life 2' });
    expect(one.macAddress).toMatch(/^[0-9a-f][26ae](:[0-9a-f]{2}){5}$/);
    expect(two.macAddress).not.toBe(one.macAddress);
    expect(one.tap).toMatch(/^bt[0-9a-f]{12}$/); // 14 of at most 15
  });
  it('refuses a guest of another subnet, and says which', () => {
    const elsewhere: NatGuest = { ...createAddressBook(small).reserve(guest('a')), ...guest('a'), address: '10.9.0.2' };
    expect(() => checkPlace(small, elsewhere)).toThrow('10.9.0.2 is not in natSubnet 10.77.0.0/29');
  });
});
