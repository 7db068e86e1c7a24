import { HoldfastError } from '../core/index.js';
import { bareMediaType, DEFAULT_VENDOR, envelopeMediaType, envelopeVersionOf } from '../protocol/index.js';
import type { EnvelopeCodec } from './model.js';

/** The envelope versions a node reads, side by side; each is one codec. */
export interface EnvelopeRegistry {
  /** What this node sends: the highest version. */
  readonly current: EnvelopeCodec;
  readonly vendor: string;
  /** Of `current`. */
  readonly mediaType: string;
  /** Highest version first; what skills that take handoffs list in `inputModes`. */
  readonly mediaTypes: readonly string[];
  /** `null`: not an envelope at all. */
  find(mediaType: string): EnvelopeCodec | 'unknown_version' | null;
}

/** @throws usage when there is no codec, or two of one version */
export function createEnvelopeRegistry(
  codecs: readonly EnvelopeCodec[],
  vendor: string = DEFAULT_VENDOR,
): EnvelopeRegistry {
  const sorted = [...codecs].sort((a, b) => b.version - a.version);
  const byMediaType = new Map(
    sorted.map((codec) => [envelopeMediaType(codec.version, vendor).toLowerCase(), codec]),
  );
  const [current] = sorted;
  if (current === undefined || byMediaType.size !== codecs.length) {
    throw new HoldfastError('usage', 'A registry needs at least one codec, and one per version.');
  }
  return {
    current,
    vendor,
    mediaType: envelopeMediaType(current.version, vendor),
    mediaTypes: sorted.map((codec) => envelopeMediaType(codec.version, vendor)),
    find: (mediaType) =>
      byMediaType.get(bareMediaType(mediaType)) ??
      (envelopeVersionOf(mediaType, vendor) === null ? null : 'unknown_version'),
  };
}
