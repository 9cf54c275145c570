// Whether the stored form of an instance or a job may contain user data, an environment, commands or scripts: a look at
// its bytes, because most contain none.

const containersMarker = Buffer.from('"containers":[');
const programMarkers = ['"script":"', '"env":{"'].map((text) => Buffer.from(text));
const userDataMarker = Buffer.from('"userData":"');
const quote = 0x22;

export function mayHoldSecrets(key: string, stored: Uint8Array): boolean {
  if (!key.startsWith('instances/') && !key.startsWith('jobs/')) return false;
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
  const at = bytes.indexOf(userDataMarker);
  if (at >= 0 && bytes[at + userDataMarker.length] !== quote) return true;
  return bytes.includes(containersMarker) || programMarkers.some((marker) => bytes.includes(marker));
}
