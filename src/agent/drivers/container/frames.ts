// Splits the stream in which an engine sends both outputs of a container into frames: a header of eight bytes (the output, three
// zeros, the length) and the content. Pure. Frames have no maximum length, so long ones are passed on in pieces.

export interface Frame {
  readonly output: 'stdout' | 'stderr';
  readonly data: Buffer;
  /** False: it continues the frame before it. */
  readonly begins: boolean;
}

export interface FrameReader {
  /** The frames, or pieces of frames, that are complete with these bytes. Throws when the bytes are not frames. */
  push(bytes: Buffer): Frame[];
}

const headerBytes = 8;
const pieceBytesMax = 64 * 1024;

export function frameReader(): FrameReader {
  let kept: Buffer = Buffer.alloc(0);
  let open: { readonly output: Frame['output']; left: number; begun: boolean } | undefined;
  return {
    push(bytes) {
      kept = kept.length === 0 ? bytes : Buffer.concat([kept, bytes]);
      const frames: Frame[] = [];
      for (;;) {
        if (open === undefined) {
          if (kept.length < headerBytes) return frames;
          open = { output: outputOf(kept), left: kept.readUInt32BE(4), begun: false };
          kept = kept.subarray(headerBytes);
        }
        const length = Math.min(open.left, pieceBytesMax);
        if (kept.length < length) return frames;
        frames.push({ output: open.output, data: kept.subarray(0, length), begins: !open.begun });
        kept = kept.subarray(length);
        open.left -= length;
        open.begun = true;
        if (open.left === 0) open = undefined;
      }
    },
  };
}

function outputOf(header: Buffer): Frame['output'] {
  const output = header.readUInt8(0);
  if (output > 2 || header.readUIntBE(1, 3) !== 0) throw new Error('the container engine sent no frames of output');
  return output === 2 ? 'stderr' : 'stdout';
}
