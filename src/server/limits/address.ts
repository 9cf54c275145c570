// What stands for a client's address in limits: an IPv4 address, or the /64 network of an IPv6 address, which is what one customer has.

/** Undefined: this machine, or an address that is not known. Programs of this machine are not limited by address: one may be a proxy. */
export function limitedAddress(remoteAddress: string | undefined): string | undefined {
  if (remoteAddress === undefined) return undefined;
  const [address = ''] = remoteAddress.split('%', 1);
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  const v4 = mapped ?? (address.includes(':') ? undefined : address);
  if (v4 !== undefined) return v4.startsWith('127.') ? undefined : v4;
  return address === '::1' ? undefined : networkOf(address);
}

/** `2001:db8::1` → `2001:db8:0:0::/64`. */
function networkOf(address: string): string {
  const [head = '', tail] = address.toLowerCase().split('::', 2);
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length);
  const groups = [...left, ...Array.from({ length: zeros }, () => '0'), ...right].slice(0, 4);
  return `${groups.map((group) => group.replace(/^0+(?=.)/, '')).join(':')}::/64`;
}
