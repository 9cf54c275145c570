// What QEMU says of a failure, without the dump of a processor's registers that KVM adds to it. Pure.

const register = /^(?:extra data\[\d+\]|Code|E?FER|[A-Z][A-Z0-9]{1,5} ?)[=:]/;

/** At most the last five lines, as one. */
export function complaints(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  return lines
    .filter((line) => line !== '' && !register.test(line))
    .slice(-5)
    .join('; ');
}
