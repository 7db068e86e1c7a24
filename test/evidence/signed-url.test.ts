import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  buildReference,
  DEFAULT_EVIDENCE_TTL_MS,
  sanitizeFilename,
  signEvidenceUrl,
  verifyEvidenceUrl,
} from '../../src/evidence/index.js';

const secret = randomBytes(32);
const now = new Date('2026-01-31T10:00:00Z');
const expiresAt = new Date(now.getTime() + DEFAULT_EVIDENCE_TTL_MS);
const grant = {
  artifactId: 'art_4mZk2Qp0x9yB3nV1aTg7',
  version: 2,
  sha256: createHash('sha256').update('x').digest('hex'),
  audience: 'https://billing.example/agents/billing',
};
const url = signEvidenceUrl(secret, { ...grant, baseUrl: 'https://triage.example/agents/triage', expiresAt });
const path = url.slice('https://triage.example'.length);
const verify = (text: string, at = now) => verifyEvidenceUrl(secret, text, at);

describe('a signed URL', () => {
  it('[R-046] grants one version to one agent for a day', () => {
    expect(url).toMatch(
      /^https:\/\/triage\.example\/agents\/triage\/evidence\/art_4mZk2Qp0x9yB3nV1aTg7\/2\?aud=/,
    );
    expect(verify(path)).toEqual(grant);
    expect(verify(path, new Date(expiresAt.getTime() - 1))).toEqual(grant);
    expect(verify(path, expiresAt)).toBeNull();
    expect(DEFAULT_EVIDENCE_TTL_MS).toBe(86_400_000);
  });

  it('grants nothing when any part of it is changed', () => {
    const changes: [RegExp, string][] = [
      [/art_4/, 'art_5'],
      [/\/2\?/, '/1?'],
      [/\/2\?/, '/02?'],
      [/billing\.example/, 'mallory.example'],
      [/exp=\d/, 'exp=9'],
      [/exp=\d+/, 'exp='],
      [/sha256=./, 'sha256=g'],
      [/sig=..../, 'sig=AAAA'],
      [/sig=.*/, 'sig='],
      [/&sig=.*/, ''],
      [/$/, '&sig=x'],
      [/$/, '&more=1'],
      [/\/evidence\//, '/other/'],
      [/art_4/, '%61rt_4'],
    ];
    for (const [from, to] of changes) expect([from, verify(path.replace(from, to))]).toEqual([from, null]);
    expect(verifyEvidenceUrl(randomBytes(32), path, now)).toBeNull();
    for (const odd of ['', '/', '?', '/evidence/a/1', '/evidence/a/1?', path.split('?')[0] ?? '']) {
      expect(verify(odd)).toBeNull();
    }
  });

  it('[R-035] becomes a reference with all that the receiver will check', () => {
    const artifact = { ...grant, bytes: 5, mediaType: 'text/plain', filename: 'a/b.txt', storedAt: '' };
    expect(buildReference(artifact, url, expiresAt)).toEqual({
      url,
      media_type: 'text/plain',
      filename: 'b.txt',
      bytes: 5,
      sha256: grant.sha256,
      artifact_id: grant.artifactId,
      version: 2,
      expires_at: '2026-02-01T10:00:00.000Z',
    });
  });
});

describe('a file name', () => {
  it.each<[string, string]>([
    ['transcript.txt', 'transcript.txt'],
    ['Überblick (2).pdf', 'Überblick (2).pdf'],
    ['../../etc/cron.d/x', 'x'],
    ['C:\\Users\\ann\\a.txt', 'a.txt'],
    ['CON', '_CON'],
    ['lpt1.txt', '_lpt1.txt'],
    ['.bashrc', 'bashrc'],
    ['..', 'evidence'],
    ['', 'evidence'],
    ['a. .', 'a'],
    ['invoice\u202efdp.exe', 'invoice_fdp.exe'],
    ['a\r\nSet-Cookie: x', 'a__Set-Cookie_ x'],
    ['a"b<c>d|e?f*g', 'a_b_c_d_e_f_g'],
    ['half\ud800', 'half_'],
  ])('%j is kept as %j', (given, kept) => {
    expect(sanitizeFilename(given)).toBe(kept);
    expect(sanitizeFilename(kept)).toBe(kept);
  });

  it('is at most 120 characters, with its extension', () => {
    const kept = sanitizeFilename(`${'😀'.repeat(300)}.pdf`);
    expect([...kept]).toHaveLength(120);
    expect(kept).toMatch(/\.pdf$/);
    expect([...sanitizeFilename(`a.${'x'.repeat(300)}`)]).toHaveLength(120);
  });
});
