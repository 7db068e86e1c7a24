import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { renderJsonSchemas } from '../src/envelope/index.js';

const folder = new URL('../schemas/', import.meta.url);
mkdirSync(folder, { recursive: true });
for (const [name, schema] of Object.entries(renderJsonSchemas())) {
  writeFileSync(fileURLToPath(new URL(name, folder)), `${JSON.stringify(schema, null, 2)}\n`);
}
