import { HoldfastError } from './errors.js';

/** Lower case only, so that no two persons differ by what is hard to see; neither a colon nor an `@`, so that an owner splits in one way. */
export const PERSON_ID_PATTERN = /^[a-z0-9][a-z0-9._-]{0,63}$/;

/** A person as owner or actor: `person:<id>@<node URL>`. The node named is the only one that can act for them. */
export interface Person {
  readonly id: string;
  readonly node: string;
}

const OWNER = /^person:([^@]*)@(.+)$/;

/** The owner that a person of this node is. @throws usage where the id is none */
export function personOwner(id: string, node: string): string {
  if (PERSON_ID_PATTERN.test(id)) return `person:${id}@${node}`;
  throw new HoldfastError(
    'usage',
    `Not the id of a person: ${JSON.stringify(id.slice(0, 80))}. It is 1 to 64 of a-z, 0-9, ".", "_" and "-", such as ann.meyer.`,
  );
}

/** `null` for an agent, and for what only looks like a person. */
export function parsePerson(owner: string): Person | null {
  const [, id, node] = OWNER.exec(owner) ?? [];
  return id !== undefined && node !== undefined && PERSON_ID_PATTERN.test(id) ? { id, node } : null;
}

/** Who can act for this owner: an agent for itself, a person's node for the person. */
export function actsFor(owner: string): string {
  return parsePerson(owner)?.node ?? owner;
}
