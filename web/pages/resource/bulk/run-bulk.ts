// Does one thing with many resources, a few at a time, and says of each what came of it.

const atATime = 4;

export interface BulkResult {
  readonly done: number;
  readonly failures: readonly { readonly name: string; readonly message: string }[];
}

/** `tell` is called after each. Never throws for what one of them throws. */
export async function runBulk<T>(
  items: readonly T[],
  { nameOf, act }: { readonly nameOf: (item: T) => string; readonly act: (item: T) => Promise<unknown> },
  tell: (result: BulkResult) => void,
): Promise<BulkResult> {
  let result: BulkResult = { done: 0, failures: [] };
  const waiting = [...items];
  const work = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
      try {
        await act(item);
        result = { ...result, done: result.done + 1 };
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        result = { ...result, failures: [...result.failures, { name: nameOf(item), message }] };
      }
      tell(result);
    }
  };
  await Promise.all(Array.from({ length: atATime }, work));
  return result;
}
