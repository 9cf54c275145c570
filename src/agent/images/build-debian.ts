// placeholder
import type { BuildContext, BuildPackage } from './build-step.ts';
export const debianBuildPackages: readonly BuildPackage[] = [];
export function debianRecipe(): string {
  return '';
}
export async function buildDebian(_c: BuildContext): Promise<string> {
  throw new Error('later');
}
