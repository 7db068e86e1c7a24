import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CANARIES } from './fixture.js';
import type { Exchange } from './proxy.js';

/** A place where something turned up that must not be there; never what it was. */
export interface Leak {
  readonly what: string;
  readonly where: string;
}

export interface LeakSources {
  readonly exchanges: readonly Exchange[];
  /** Everything each process wrote to stdout and stderr. */
  readonly output: Readonly<Record<string, Buffer>>;
  readonly audit: string;
  /** All that the ledger holds of the scenario, which need not be in `dir`. */
  readonly ledger: string;
  /** Folder of both nodes and their ledger; every file in it is read, the write-ahead log included. */
  readonly dir: string;
}

/**
 * Looks for what was planted in the source record in everything that left it, and for the tokens seen on the wire in everything
 * that is kept.
 */
export function findLeaks(sources: LeakSources): Leak[] {
  const kept = new Map<string, Buffer>(
    Object.entries(sources.output).map(([name, text]) => [`log of ${name}`, text]),
  );
  kept.set('audit', Buffer.from(sources.audit));
  kept.set('ledger', Buffer.from(sources.ledger));
  for (const file of filesUnder(sources.dir)) kept.set(file, readFileSync(join(sources.dir, file)));

  const wire = sources.exchanges.flatMap(({ request, response }) => [request, response]);
  const everywhere = new Map([...kept, ['wire', Buffer.concat(wire)] as const]);

  const leaks = Object.entries(CANARIES).flatMap(([what, text]) => placesOf(text, everywhere, what));
  return [...leaks, ...tokensOf(sources.exchanges).flatMap((token) => placesOf(token, kept, 'bearer_token'))];
}

function placesOf(text: string, places: ReadonlyMap<string, Buffer>, what: string): Leak[] {
  // As it was written, and as it looks inside JSON that is itself a JSON string.
  const forms = [text, JSON.stringify(text).slice(1, -1)];
  return [...places]
    .filter(([, bytes]) => forms.some((form) => bytes.includes(form)))
    .map(([where]) => ({ what, where }));
}

function tokensOf(exchanges: readonly Exchange[]): string[] {
  const tokens = exchanges.flatMap(({ authorization }) => authorization?.split(' ')[1] ?? []);
  return [...new Set(tokens)];
}

function filesUnder(dir: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(dir.length + 1));
}
