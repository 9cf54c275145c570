export function filesOf(tier: string): { include: string[]; exclude: string[] };
