// Saves what the page has as the browser saves a download.

export function saveFile(
  parts: readonly BlobPart[],
  { name, type }: { readonly name: string; readonly type: string },
): void {
  const url = URL.createObjectURL(new Blob([...parts], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
