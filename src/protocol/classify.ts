import { bareMediaType, envelopeVersionOf } from './media-type.js';
import { CONTROL_MEDIA_TYPE, DEFAULT_VENDOR, EXTENSION_URI } from './names.js';
import type { Message, Part } from './wire.js';

export type MessageClass = { kind: 'offer' } | { kind: 'control' } | { kind: 'plain' };

/** Whether the part says it is an envelope, of whatever version and in whatever kind of part. */
function isEnvelopePart(part: Part, vendor: string = DEFAULT_VENDOR): boolean {
  return part.mediaType !== undefined && envelopeVersionOf(part.mediaType, vendor) !== null;
}

/**
 * Who answers a message: anything that claims to be an offer is one, however broken, so that it is refused as such and
 * never reaches an ordinary handler that would improvise.
 */
export function classifyMessage(message: Message, vendor: string = DEFAULT_VENDOR): MessageClass {
  if (message.parts.some((part) => isEnvelopePart(part, vendor))) return { kind: 'offer' };
  const control = message.parts.some(
    (part) =>
      part.data !== undefined &&
      part.mediaType !== undefined &&
      bareMediaType(part.mediaType) === CONTROL_MEDIA_TYPE,
  );
  if (control) return { kind: 'control' };
  return message.extensions?.includes(EXTENSION_URI) ? { kind: 'offer' } : { kind: 'plain' };
}
