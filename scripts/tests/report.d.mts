export interface TestReport {
  readonly passed: number;
  readonly failed: number;
  readonly files: readonly {
    readonly path: string;
    readonly durationMs: number;
    readonly passed: number;
    readonly failed: number;
    readonly failures: readonly string[];
  }[];
  readonly durations: Readonly<Record<string, number>>;
  readonly missing?: string;
}
export function readReport(path: string, root: string): TestReport;
