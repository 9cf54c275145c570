// The version of this program; the build replaces nothing here, the release test holds it against package.json.
export const version = '0.1.0';
