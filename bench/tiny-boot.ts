import type { Emit } from './row.ts';
export async function bootTiny(_directory: string, _emit: Emit): Promise<void> {}
