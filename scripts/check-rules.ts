/** Checks the import rules, and that the check saw the tree: a run that looks at nothing would pass as well. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { cruise, type ICruiseOptions, type ICruiseResult } from 'dependency-cruiser';
import readRules from 'dependency-cruiser/config-utl/extract-depcruise-config';

const root = resolve(import.meta.dirname, '..');

/** Modules under src/ that must at least have been seen. Raise it as the tree grows. */
const MINIMUM_MODULES = 200;

export interface RulesReport {
  readonly modules: number;
  readonly dependencies: number;
  /** One line per violation: rule, from, to. */
  readonly violations: readonly string[];
}

/** Applies the import rules to the tree at `baseDir`. */
export async function checkRules(baseDir: string): Promise<RulesReport> {
  const { forbidden = [], options } = await readRules(join(root, '.dependency-cruiser.mjs'));
  const checked: ICruiseOptions = { ...options, baseDir, validate: true, ruleSet: { forbidden } };
  const roots = ['src', 'test', 'scripts', 'examples'].filter((name) => existsSync(join(baseDir, name)));
  const { output } = await cruise(roots, checked);
  const result = output as ICruiseResult;
  const own = result.modules.filter((module) => module.source.startsWith('src/'));
  return {
    modules: own.length,
    dependencies: own.reduce((sum, module) => sum + module.dependencies.length, 0),
    violations: result.summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} -> ${to}`),
  };
}

async function main(): Promise<number> {
  const report = await checkRules(root);
  const counts = `${report.modules} modules, ${report.dependencies} dependencies`;
  for (const line of report.violations) process.stderr.write(`${line}\n`);
  if (report.violations.length > 0) {
    process.stderr.write(`${counts}, ${report.violations.length} violations\n`);
    return 1;
  }
  if (report.modules < MINIMUM_MODULES) {
    process.stderr.write(`${counts}: fewer than the ${MINIMUM_MODULES} modules that must be there\n`);
    return 1;
  }
  process.stdout.write(`${counts}, no violation\n`);
  return 0;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) process.exitCode = await main();
