// Copies files from and to a container as the engine's tar archives, so that the container needs no program for it. It behaves
// like a command: it reads or writes a tar archive, and reports failures on its standard error.

import type { CopyLook, CopyRequest } from '../../../api/access-protocol.ts';
import { drained } from '../../../base/drained.ts';
import { describeError } from '../../../base/log.ts';
import type { ExecOutput, GuestCommand } from '../access.ts';
import type { Engine } from './engine.ts';

export function copyCommand(
  engine: Engine,
  { copy, container, path }: Omit<CopyRequest, 'container'> & { readonly container: string },
): GuestCommand {
  const given = new AbortController();
  if (copy === 'to') return intoContainer(engine, { container, path });
  const source = copy === 'look' ? lookAt(engine, { container, path }) : engine.archive(container, path);
  return commandOf(toEnd(source, given.signal), {
    write: () => Promise.resolve(), // it takes no input
    endInput: () => {},
    kill: () => given.abort(),
  });
}

interface Place {
  readonly container: string;
  readonly path: string;
}

async function* lookAt(engine: Engine, { container, path }: Place): AsyncGenerator<Uint8Array> {
  const there = await engine.look(container, path);
  // Only the engine can resolve a link within the container.
  const followed = there === 'link' ? await engine.look(container, `${path.replace(/\/+$/, '')}/.`) : there;
  const kind: CopyLook['kind'] =
    there === null ? 'nothing' : followed === null || followed === 'link' ? 'other' : followed;
  yield Buffer.from(JSON.stringify({ kind } satisfies CopyLook));
}

async function* toEnd(source: AsyncGenerator<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  for await (const piece of source) {
    if (signal.aborted) return;
    yield piece;
  }
}

function intoContainer(engine: Engine, { container, path }: Place): GuestCommand {
  const upload = engine.unpack(container, path);
  upload.catch(() => {}); // reported by the output
  async function* untilTaken(): AsyncGenerator<Uint8Array> {
    await (await upload).taken;
    yield* [];
  }
  return commandOf(untilTaken(), {
    async write(input) {
      const body = (await upload.catch(() => undefined))?.body;
      if (body === undefined || body.destroyed || body.writableEnded) return; // the engine takes no more data, and reports why
      if (!body.write(input)) await drained(body);
    },
    endInput: () => void upload.then(({ body }) => body.end()).catch(() => {}),
    kill: () => void upload.then(({ body }) => body.destroy()).catch(() => {}),
  });
}

function commandOf(
  source: AsyncGenerator<Uint8Array>,
  input: Pick<GuestCommand, 'write' | 'endInput' | 'kill'>,
): GuestCommand {
  const exit = Promise.withResolvers<{ readonly code: number }>();
  return {
    ...input,
    async *output(): AsyncGenerator<ExecOutput> {
      try {
        for await (const data of source) yield { stream: 'stdout', data };
        exit.resolve({ code: 0 });
      } catch (error) {
        yield { stream: 'stderr', data: Buffer.from(`${describeError(error)}\n`) };
        exit.resolve({ code: 1 });
      }
    },
    resize: () => Promise.resolve(),
    exit: exit.promise,
  };
}
