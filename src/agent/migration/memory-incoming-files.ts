// Files of moving guests that are only pretended: for the simulator, and for hosts whose guests are. They stay when the agent restarts.

import type { DiskReader, Incoming, IncomingFiles, IncomingLook } from './moved-files.ts';

interface Kept {
  readonly incoming: Incoming;
  look: IncomingLook;
  readonly bytes: Map<string, Uint8Array>;
}

/** Of one host, by instance and incarnation. */
export type IncomingMemory = Map<string, Kept>;

export function createMemoryIncomingFiles(
  memory: IncomingMemory,
  /** Throws where a change is to fail. */
  beforeChange: () => Promise<void> = async () => {},
): IncomingFiles {
  const known = (incoming: Incoming): Kept => {
    const kept = memory.get(keyOf(incoming));
    if (kept === undefined) throw new Error(`nothing of ${incoming.instanceId} has been received`);
    return kept;
  };
  const makeRoom = async (incoming: Incoming, look: IncomingLook): Promise<void> => {
    await beforeChange();
    const { instanceId, incarnation } = incoming;
    memory.set(keyOf(incoming), { incoming: { instanceId, incarnation }, look, bytes: new Map() });
  };
  return {
    begin: makeRoom,
    expect: makeRoom,
    list: async () => Array.from(memory.values(), ({ incoming, look }) => ({ ...incoming, ...look })),
    look: async (incoming) => memory.get(keyOf(incoming))?.look,
    async append(incoming, { name, length, bytes }) {
      await beforeChange();
      const kept = known(incoming);
      const before = kept.bytes.get(name) ?? new Uint8Array();
      kept.bytes.set(name, Buffer.concat([before, bytes ?? new Uint8Array(length)]));
      const files = kept.look.files.map((file) =>
        file.name === name ? { ...file, doneBytes: file.doneBytes + length } : file,
      );
      kept.look = { ...kept.look, files };
    },
    async finish(incoming) {
      await beforeChange();
      const kept = known(incoming);
      kept.look = { ...kept.look, whole: true };
    },
    fileOf: (incoming, name) => {
      const bytes = (): Uint8Array => known(incoming).bytes.get(name) ?? new Uint8Array();
      return {
        path: `/pretended/${keyOf(incoming)}/${name}.qcow2`,
        bytes: async () => bytes(),
        write: (written) => void known(incoming).bytes.set(name, written),
        open: async () => readerOf(bytes()),
      };
    },
    async discard(incoming) {
      await beforeChange();
      memory.delete(keyOf(incoming));
    },
  };
}

const keyOf = ({ instanceId, incarnation }: Incoming): string => `${instanceId}.${incarnation}`;

export function readerOf(bytes: Uint8Array): DiskReader {
  return {
    sizeBytes: bytes.length,
    read: async (offset, length) => bytes.subarray(offset, offset + length),
    close: async () => {},
  };
}
