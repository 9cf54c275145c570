// The message for an empty list. It must not claim that nothing exists when only the given labels match nothing.

export function nothingFound(
  things: string,
  { selector, otherwise }: { readonly selector: string | undefined; readonly otherwise: string },
): string {
  return selector === undefined ? otherwise : `no ${things} with the labels "${selector}"`;
}
