import { beforeAll, describe, expect, it } from 'vitest';
import {
  DEFAULT_LIMITS,
  digestOf,
  HoldfastError,
  type JsonObject,
  type JsonValue,
} from '../../src/core/index.js';
import {
  buildOfferMessage,
  createEnvelopeRegistry,
  type EnvelopeCodec,
  envelopeV2,
  readOffer,
  readOfferKey,
  readStoredEnvelope,
} from '../../src/envelope/index.js';
import { EXTENSION_URI, type Message, type Part, parseMessage } from '../../src/protocol/index.js';
import { build, envelopeJson, offerWith, reference, registry, TRIAGE } from './fixtures.js';

const V2 = 'application/vnd.holdfast.handoff.v2+json';
const V3 = 'application/vnd.holdfast.handoff.v3+json';

let offer: Message;
beforeAll(async () => {
  offer = buildOfferMessage(await build(), registry);
});

function refusal(message: Message): string[] {
  try {
    readOffer(message, registry, DEFAULT_LIMITS);
  } catch (error) {
    if (error instanceof HoldfastError) return [error.code, ...error.fields.map(({ path }) => path)];
    throw error;
  }
  return [];
}

const withParts = (change: (parts: Part[]) => Part[]): Message => ({
  ...offer,
  parts: change([...offer.parts]),
});
const withMetadata = (change: JsonObject): Message =>
  withParts((parts) =>
    parts.map((part) => (part.url ? { ...part, metadata: { ...part.metadata, ...change } } : part)),
  );

describe('an offer', () => {
  it('[R-042][R-045][R-167] is one message: text, envelope, one url part per reference, and no context of the sender', async () => {
    const { canonical } = await build();
    expect(offer).toEqual({
      messageId: 'CASE-7001:4:1',
      role: 'ROLE_USER',
      extensions: [EXTENSION_URI],
      parts: [
        { text: expect.stringMatching(/^Handover of CASE-7001 /), mediaType: 'text/plain' },
        { data: JSON.parse(canonical), mediaType: V2 },
        {
          url: reference.url,
          mediaType: 'text/plain',
          filename: 'transcript.txt',
          metadata: {
            sha256: reference.sha256,
            bytes: 1234,
            artifactId: 'art_1',
            version: 1,
            expiresAt: reference.expires_at,
          },
        },
      ],
    });
    expect(parseMessage(JSON.parse(JSON.stringify(offer)))).toEqual(offer);
  });

  it('[R-194] refers to the transcript beside the structured summary', () => {
    const { envelope } = readOffer(offer, registry, DEFAULT_LIMITS);
    expect(envelope.summary.text).toContain('transcript.txt');
    expect(envelope.references[0]?.url).toBe(offer.parts[2]?.url);
  });

  it('[R-041] is read to the bytes that were built, whatever the order of its keys', async () => {
    const built = await build();
    const shuffled = Object.fromEntries(Object.entries(await envelopeJson()).reverse());
    const read = readOffer(await offerWith(shuffled), registry, DEFAULT_LIMITS);
    expect(read).toEqual({ envelope: built.envelope, canonical: built.canonical, digest: built.digest });
    expect(readStoredEnvelope(read.canonical, registry)).toEqual(built.envelope);
  });

  it('[R-044] needs exactly one envelope part', () => {
    expect(refusal(withParts((parts) => parts.filter((part) => part.mediaType !== V2)))).toEqual([
      'envelope_missing',
    ]);
    expect(refusal(withParts((parts) => [...parts, { data: {}, mediaType: V2 }]))).toEqual([
      'envelope_multiple',
    ]);
    expect(refusal(withParts((parts) => [...parts, { data: {}, mediaType: V3 }]))).toEqual([
      'envelope_multiple',
    ]);
    expect(refusal(withParts(() => [{ text: '{}', mediaType: V2 }]))).toEqual([
      'schema_invalid',
      'message.parts',
    ]);
  });

  it('[R-022][R-068][R-171] of an unknown version is refused before anything else of it is read', () => {
    const trap = new Proxy({}, { ownKeys: () => expect.unreachable('the envelope was read') });
    const message = withParts(([text]) => [text as Part, { data: trap as JsonObject, mediaType: V3 }]);
    expect(refusal(message)).toEqual(['version_unknown']);
    expect(readOfferKey(message, registry)).toBeNull();
  });

  it('[R-171] whose media type and version field differ is refused', async () => {
    expect(refusal(await offerWith(await envelopeJson({ version: 3 })))).toEqual([
      'schema_invalid',
      'version',
    ]);
  });

  it('[R-038] larger than the limit is refused before its form is looked at', async () => {
    const large = await offerWith({ filler: 'x'.repeat(64 * 1024) });
    expect(refusal(large)).toEqual(['envelope_too_large']);
  });

  it('has ids that follow from the case', async () => {
    expect(refusal({ ...offer, messageId: 'CASE-7001:4:2' })).toEqual([
      'message_id_mismatch',
      'message.messageId',
    ]);
    expect(refusal(await offerWith(await envelopeJson({ handoff_id: 'CASE-7001:5' })))).toEqual([
      'schema_invalid',
      'handoff_id',
    ]);
  });

  it('[R-069] with five problems gets three of them back', async () => {
    const message = await offerWith(
      await envelopeJson({ goal: 1, done: 1, remaining: 1, skill: 1, kind: 1 }),
    );
    expect(refusal(message)).toHaveLength(4);
  });

  it('[R-043][R-168] carries no content beside its references', () => {
    const spoken = 'Ann: hi\nBot: hello\nAnn: charged twice\nBot: let me look';
    expect(refusal(withParts((parts) => [...parts, { raw: 'aGk=' }]))).toEqual([
      'evidence_inline',
      'message.parts.3.raw',
    ]);
    expect(refusal(withParts((parts) => [{ text: spoken }, ...parts]))).toEqual([
      'evidence_inline',
      'message.parts.0.text',
    ]);
    expect(refusal(withParts((parts) => [...parts, { data: {} }]))).toEqual([
      'schema_invalid',
      'message.parts.3',
    ]);
  });

  it('[R-047] has the hash of every reference in its url part too', () => {
    expect(refusal(withMetadata({ sha256: null }))).toEqual([
      'evidence_hash_missing',
      'message.parts.2.metadata.sha256',
    ]);
    expect(refusal(withParts((parts) => parts.map(({ metadata, ...part }) => part)))).toEqual([
      'evidence_hash_missing',
      'message.parts.2.metadata.sha256',
    ]);
    expect(refusal(withMetadata({ sha256: 'a'.repeat(64) }))).toEqual([
      'evidence_hash_mismatch',
      'message.parts.2.metadata.sha256',
    ]);
  });

  it.each<[JsonObject, string]>([
    [{ bytes: 1 }, 'bytes'],
    [{ bytes: '1234' }, 'bytes'],
    [{ artifactId: 'art_2' }, 'artifactId'],
    [{ version: 2 }, 'version'],
    [{ expiresAt: '2026-02-09T10:00:00.000Z' }, 'expiresAt'],
  ])('[R-035] whose url part says %j is refused', (change, name) => {
    expect(refusal(withMetadata(change))).toEqual(['schema_invalid', `message.parts.2.metadata.${name}`]);
  });

  it('[R-035] has url parts and references one to one', async () => {
    const url = offer.parts[2] as Part;
    expect(refusal(withParts((parts) => parts.slice(0, 2)))).toEqual(['schema_invalid', 'references.0']);
    expect(refusal(withParts((parts) => [...parts, url]))).toEqual(['schema_invalid', 'message.parts.3.url']);
    expect(refusal(withParts((parts) => [...parts, { ...url, url: `${TRIAGE}/other` }]))).toEqual([
      'schema_invalid',
      'message.parts.3.url',
    ]);
    const odd = withParts((parts) => parts.map((part) => (part.url ? { ...part, filename: 'b.txt' } : part)));
    expect(refusal(odd)).toEqual(['schema_invalid', 'message.parts.2.filename']);
    const html = withParts((parts) =>
      parts.map((part) => (part.url ? { ...part, mediaType: 'text/html' } : part)),
    );
    expect(refusal(html)).toEqual(['schema_invalid', 'message.parts.2.mediaType']);
    const cased = withParts((parts) =>
      parts.map((part) => (part.url ? { ...part, mediaType: 'Text/Plain' } : part)),
    );
    expect(refusal(cased)).toEqual([]);
  });
});

describe('the key of an offer that cannot be read', () => {
  it('is there while the identity fields are in form', async () => {
    const broken = { ...(await envelopeJson({ goal: 5, extra: true })), epoch: 'x' };
    expect(readOfferKey(await offerWith(broken), registry)).toEqual({
      root: TRIAGE,
      caseId: 'CASE-7001',
      handoffId: 'CASE-7001:4',
      attempt: 1,
      digest: digestOf(broken),
    });
  });

  it.each<[string, JsonValue]>([
    ['root', 'nowhere'],
    ['case_id', 7001],
    ['case_id', 'CASE-7002'],
    ['handoff_id', 'CASE-7001'],
    ['attempt', 0],
    ['attempt', null],
  ])('is null where %s is %j', async (field, value) => {
    expect(readOfferKey(await offerWith(await envelopeJson({ [field]: value })), registry)).toBeNull();
  });

  it('is null without exactly one data part', async () => {
    expect(readOfferKey(await offerWith('text'), registry)).toBeNull();
    expect(
      readOfferKey(
        withParts((parts) => parts.slice(0, 1)),
        registry,
      ),
    ).toBeNull();
    expect(
      readOfferKey(
        withParts((parts) => [...parts, { data: {}, mediaType: V2 }]),
        registry,
      ),
    ).toBeNull();
  });
});

describe('envelope versions', () => {
  const envelopeV3: EnvelopeCodec = {
    version: 3,
    parse: (value) => {
      const { urgency, ...rest } = value as JsonObject;
      if (urgency !== 'low') throw new HoldfastError('schema_invalid');
      return { ...envelopeV2.parse({ ...rest, version: 2 }), version: 3 };
    },
    jsonSchema: () => ({}),
  };

  it('[R-022] live side by side, each read by its own codec', async () => {
    const both = createEnvelopeRegistry([envelopeV2, envelopeV3]);
    expect(both.mediaTypes).toEqual([V3, V2]);
    expect(both).toMatchObject({ current: envelopeV3, mediaType: V3 });
    const value = await envelopeJson({ version: 3, urgency: 'low' });
    const newer = withParts((parts) =>
      parts.map((part) => (part.data ? { data: value, mediaType: V3 } : part)),
    );
    expect(readOffer(newer, both, DEFAULT_LIMITS)).toMatchObject({
      envelope: { version: 3 },
      digest: digestOf(value),
    });
    expect(readOffer(offer, both, DEFAULT_LIMITS).envelope.version).toBe(2);
    expect(refusal(newer)).toEqual(['version_unknown']);
    expect(buildOfferMessage(await build(), both).parts[1]?.mediaType).toBe(V2);
  });

  it('are found by media type, with parameters and in any letter case', () => {
    expect(registry.find('Application/vnd.Holdfast.handoff.v2+JSON; charset=utf-8')).toBe(envelopeV2);
    expect(registry.find('application/vnd.holdfast.handoff.v02+json')).toBe('unknown_version');
    expect(registry.find('application/json')).toBeNull();
    const own = createEnvelopeRegistry([envelopeV2], 'acme');
    expect(own.mediaTypes).toEqual(['application/vnd.acme.handoff.v2+json']);
    expect(own.find(V2)).toBeNull();
  });

  it('are one codec each', () => {
    expect(() => createEnvelopeRegistry([])).toThrow(HoldfastError);
    expect(() => createEnvelopeRegistry([envelopeV2, envelopeV2])).toThrow(HoldfastError);
  });
});
