// What is told of an empty list. It must never say that there is nothing where only nothing has the labels that were asked for.

export function nothingFound(
  things: string,
  { selector, otherwise }: { readonly selector: string | undefined; readonly otherwise: string },
): string {
  return selector === undefined ? otherwise : `no ${things} with the labels "${selector}"`;
}
