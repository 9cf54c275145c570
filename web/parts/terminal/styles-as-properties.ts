// The terminal sets the colours of 24 bits as an attribute, which the policy of the page refuses. As a property it is permitted, because
// only scripts of the page can set it.

const setAttribute = HTMLSpanElement.prototype.setAttribute;

HTMLSpanElement.prototype.setAttribute = function (this: HTMLSpanElement, name: string, value: string): void {
  if (name === 'style') this.style.cssText = value;
  else setAttribute.call(this, name, value);
};
