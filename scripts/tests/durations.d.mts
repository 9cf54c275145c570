export function readDurations(root: string): Record<string, number>;
