import type { TestProject } from 'vitest/node';
import { startPostgres } from './server.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** URL of the one PostgreSQL that all test files share; each makes databases of its own in it. */
    postgresUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres();
  project.provide('postgresUrl', server.url());
  return () => server.remove();
}
