// The terminal sets colours of 24 bits as an attribute, which the policy of the page refuses. As a property it is permitted, because only
// scripts of the page can set it.

// oxlint-disable-next-line typescript/unbound-method -- it is called with its element
const { setAttribute } = Element.prototype;

HTMLElement.prototype.setAttribute = function (this: HTMLElement, name: string, value: string): void {
  if (name === 'style') this.style.cssText = value;
  else setAttribute.call(this, name, value);
};
