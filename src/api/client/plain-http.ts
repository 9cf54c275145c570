// Which addresses would show a token to the network.

/** Whether requests to this address cross a network without encryption: plain HTTP to another machine. */
export function crossesInClear(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !(hostname === 'localhost' || hostname === '[::1]' || /^127\.[\d.]+$/.test(hostname));
}
