// Runs one action on many resources, a few at a time, and reports the result of each.

const atATime = 4;

export interface BulkResult {
  readonly done: number;
  readonly failures: readonly { readonly name: string; readonly message: string }[];
}

/** Calls `tell` after each. An error of one resource is part of its result; it is not thrown. */
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
