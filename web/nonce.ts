// The nonce of this page, for styles that libraries add. Some of them take none: each new <style> gets it, before anything
// renders.

const meta = document.getElementById('csp-nonce');

/** Empty where the server sent none. The attribute reads empty; the property does not. */
export const pageNonce: string = meta?.nonce ?? '';

// oxlint-disable typescript/no-deprecated -- only its overloads for old elements are
const create = document.createElement.bind(document);
document.createElement = (name: string, options?: ElementCreationOptions): HTMLElement => {
  const element = create(name, options);
  if (element instanceof HTMLStyleElement) element.nonce = pageNonce;
  return element;
};
