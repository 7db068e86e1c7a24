import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    environment: 'node',
    include: ['test/**/*.test.ts'],
    exclude: ['node_modules/**', 'test/crash/**'],
    globalSetup: ['test/postgres/global-setup.ts'],
    // Forks, not threads: tests open databases, listen on ports and start child processes.
    pool: 'forks',
    watch: false,
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
