// The version of this program; the release test compares it with package.json.
export const version = '0.1.0';
