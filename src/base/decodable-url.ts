// URLs with escapes in them: whether there is an absolute one whose parts can be decoded. Pure.

/** False also for `%` before anything but two hex digits, as in a password that was not encoded. */
export function isDecodableUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null) return false;
  try {
    for (const part of [url.username, url.password, url.pathname]) decodeURIComponent(part);
    return true;
  } catch {
    return false; // URIError says no more
  }
}
