// Cuts a zstd stream where its frames end: pure. Node's decoder stops silently after the first frame when the next one begins in
// the same chunk, and takes whatever follows for nothing; parallel and seekable writers make many frames. Layout: RFC 8878.

import { DriverError } from '../../host/driver-error.ts';

/**
 * The same bytes; no chunk spans two frames. `onOutput`: told how many bytes will come out of them at least, by what their frames say of themselves,
 * before they are passed on. Throws `DriverError` `ImageInvalid` when the stream is cut off or something else follows a frame. */
export async function* cutAtFrames(
  packed: AsyncIterable<Uint8Array>,
  onOutput: (bytes: number) => void = () => {},
): AsyncGenerator<Uint8Array> {
  const state = newState();
  for await (const chunk of packed) {
    for (let at = 0; at < chunk.length; ) {
      const { used, frameEnds } = take(state, chunk.subarray(at));
      onOutput(state.outputBytes);
      yield chunk.subarray(at, at + used);
      at += used;
      if (frameEnds) state.frames++;
    }
  }
  if (state.part !== 'magic' || state.gathered.length > 0 || state.frames === 0) throw damaged('it is cut off');
}

interface State {
  /** What comes next: a field that is gathered byte by byte, or content that passes through. */
  part: 'magic' | 'skippableSize' | 'descriptor' | 'header' | 'blockHeader' | 'content';
  gathered: number[];
  needed: number;
  contentLeft: number;
  afterContent: 'magic' | 'blockHeader' | 'lastBlock';
  checksum: boolean;
  /** Bytes of the header that say how long the content of the frame is. */
  contentSizeBytes: number;
  /** The frame has said so: its blocks are not counted again. */
  told: boolean;
  outputBytes: number;
  frames: number;
}

function newState(): State {
  return {
    ...{ part: 'magic', gathered: [], needed: 4, contentLeft: 0, afterContent: 'magic' },
    ...{ checksum: false, contentSizeBytes: 0, told: false, outputBytes: 0, frames: 0 },
  };
}

function take(state: State, bytes: Uint8Array): { used: number; frameEnds: boolean } {
  let used = 0;
  while (used < bytes.length) {
    if (state.part === 'content') {
      const part = Math.min(state.contentLeft, bytes.length - used);
      used += part;
      state.contentLeft -= part;
      if (state.contentLeft === 0 && endContent(state)) return { used, frameEnds: true };
      continue;
    }
    state.gathered.push(bytes[used++] ?? 0);
    if (state.gathered.length === state.needed && endField(state)) return { used, frameEnds: true };
  }
  return { used, frameEnds: false };
}

function expect(state: State, part: State['part'], needed: number): void {
  state.part = part;
  state.needed = needed;
  state.gathered = [];
}

function passContent(state: State, length: number, afterContent: State['afterContent']): boolean {
  state.part = 'content';
  state.gathered = [];
  state.contentLeft = length;
  state.afterContent = afterContent;
  return length === 0 && endContent(state);
}

/** True when the frame is over. */
function endContent(state: State): boolean {
  if (state.afterContent === 'lastBlock' && state.checksum) return passContent(state, 4, 'magic');
  if (state.afterContent === 'blockHeader') {
    expect(state, 'blockHeader', 3);
    return false;
  }
  expect(state, 'magic', 4);
  return true;
}

/** Reads the field just gathered. True when the frame is over. */
function endField(state: State): boolean {
  const value = state.gathered.reduceRight((sum, byte) => sum * 256 + byte, 0); // little-endian
  switch (state.part) {
    case 'magic':
      if (value === 0xfd2fb528) expect(state, 'descriptor', 1);
      else if (value >= 0x184d2a50 && value <= 0x184d2a5f) expect(state, 'skippableSize', 4);
      else throw damaged(state.frames === 0 ? 'it does not begin like zstd' : 'there is something after its end');
      return false;
    case 'skippableSize':
      return passContent(state, value, 'magic');
    case 'descriptor': {
      const singleSegment = (value >> 5) & 1;
      const contentSizeBytes = [singleSegment, 2, 4, 8][value >> 6] ?? 0;
      const dictionaryBytes = [0, 1, 2, 4][value & 3] ?? 0;
      state.checksum = (value & 4) !== 0;
      state.contentSizeBytes = contentSizeBytes;
      state.told = contentSizeBytes > 0;
      const needed = 1 - singleSegment + dictionaryBytes + contentSizeBytes;
      expect(state, 'header', needed);
      if (needed === 0) expect(state, 'blockHeader', 3);
      return false;
    }
    case 'header':
      if (state.told) state.outputBytes += contentSizeIn(state);
      expect(state, 'blockHeader', 3);
      return false;
    case 'blockHeader': {
      const type = (value >> 1) & 3;
      if (type === 3) throw damaged('it has a block of an unknown kind');
      // A raw block, or one byte over and over. What comes out of a compressed one is not said.
      if (!state.told && type !== 2) state.outputBytes += value >> 3;
      return passContent(state, type === 1 ? 1 : value >> 3, (value & 1) === 1 ? 'lastBlock' : 'blockHeader');
    }
    case 'content':
      return false;
  }
}

function contentSizeIn({ gathered, contentSizeBytes }: State): number {
  const size = gathered.slice(-contentSizeBytes).reduceRight((sum, byte) => sum * 256 + byte, 0);
  return contentSizeBytes === 2 ? size + 256 : size;
}

function damaged(reason: string): DriverError {
  return new DriverError('ImageInvalid', `cannot unpack the image as zstd: ${reason}`);
}
