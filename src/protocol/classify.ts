import { envelopeVersionOf, isAnswerMediaType, isControlMediaType } from './media-type.js';
import { DEFAULT_VENDOR, EXTENSION_URI } from './names.js';
import type { Message, Part } from './wire.js';

export type MessageClass = { kind: 'offer' } | { kind: 'answer' } | { kind: 'control' } | { kind: 'plain' };

/** Whether the part says it is an envelope, of whatever version and in whatever kind of part. */
function isEnvelopePart(part: Part, vendor: string = DEFAULT_VENDOR): boolean {
  return part.mediaType !== undefined && envelopeVersionOf(part.mediaType, vendor) !== null;
}

function isControlPart(part: Part): boolean {
  return part.mediaType !== undefined && isControlMediaType(part.mediaType);
}

function isAnswerPart(part: Part): boolean {
  return part.mediaType !== undefined && isAnswerMediaType(part.mediaType);
}

/**
 * Who answers a message: anything that claims to be an offer, an answer to a question, or a control message, is one, however broken, so that it is refused as such and
 * never reaches an ordinary handler that would improvise.
 */
export function classifyMessage(message: Message, vendor: string = DEFAULT_VENDOR): MessageClass {
  if (message.parts.some((part) => isEnvelopePart(part, vendor))) return { kind: 'offer' };
  if (message.parts.some(isAnswerPart)) return { kind: 'answer' };
  if (message.parts.some(isControlPart)) return { kind: 'control' };
  return message.extensions?.includes(EXTENSION_URI) ? { kind: 'offer' } : { kind: 'plain' };
}
