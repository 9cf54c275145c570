// The tiny image, built once for all tests and kept in the checkout's .berth folder.

import { fileURLToPath } from 'node:url';
import { buildImage } from '../src/agent/images/build/build.ts';

export const imageDirectory = fileURLToPath(new URL('../.berth/images', import.meta.url));

let built: ReturnType<typeof buildImage> | undefined;

export function tinyImage() {
  built ??= buildImage('tiny', { directory: imageDirectory });
  return built;
}
