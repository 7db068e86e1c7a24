import { describe, expect, it } from 'vitest';
import { findPersonalData, redactText } from '../../src/envelope/index.js';

const JWT = 'eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ0cmlhZ2UifQ.c2lnbmF0dXJlLXNpZ25hdHVyZQ';

const PERSONAL: [rule: string, text: string][] = [
  ['phone', 'call +49 170 1234567 today'],
  ['phone', '+491701234567'],
  ['phone', '+1 (555) 123-4567'],
  ['phone', '(+44) 20 7946 0958'.slice(1)],
  ['phone', '0049 170 1234567'],
  ['phone', '0151-23456789'],
  ['phone', '030 / 123 456 78'],
  ['phone', '01512345678'],
  ['phone', '(555) 123-4567'],
  ['phone', '555-123-4567'],
  ['phone', '555.123.4567'],
  ['phone', 'tel: 1234567'],
  ['phone', 'Phone number is 5551234'],
  ['phone', 'call me back at 5551234567'],
  ['phone', '+49\u00a0170\u00a01234567'],
  ['phone', '+49\u200b1701\u200b234567'],
  ['phone', '＋４９ １７０ １２３４５６７'],
  ['email', 'write to ann.lee+x@mail.example.co.uk.'],
  ['email', 'jürgen@büro.example'],
  ['iban', 'DE89 3704 0044 0532 0130 00'],
  ['iban', 'to GB82WEST12345698765432 please'],
  ['iban', 'NL91ABNA0417164300 PAID'],
  ['card', '4111 1111 1111 1111'],
  ['card', '5500-0000-0000-0004'],
  ['card', '378282246310005'],
  ['token', `Authorization: Bearer ${'a1b2'.repeat(8)}`],
  ['token', 'Basic dXNlcjpwYXNzd29yZA=='],
  ['token', JWT],
  ['api_key', `sk_live_${'a1B2'.repeat(6)}`],
  ['api_key', 'AKIAIOSFODNN7EXAMPLE'],
  ['api_key', `ghp_${'a1B2'.repeat(9)}`],
  ['password', 'password: hunter2!'],
  ['password', 'api_key=9f8e7d6c5b'],
  ['private_key', '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2Vw\n-----END PRIVATE KEY-----'],
  ['url_secret', 'https://files.example/a?sig=0123456789abcdef'],
  ['url_secret', 'postgres://app:s3cret@db.example/x'],
];

const HARMLESS = [
  'CASE-7001',
  'CASE-7001:4:1',
  'pay_A and pay_B',
  'acct_881',
  'art_4mZk2Qp0x9yB3nV1aTg7',
  'INV-2026-000123',
  'invoice 20260131000123',
  'order 1234567890',
  'order number 4111111111111112',
  '2026-01-31T10:00:00Z',
  '2026-01-31T10:00:40.000+02:00',
  '2026-01-31 10:00',
  '31.01.2026 10:00',
  '01.02.2026 10:00',
  '01/02/2026 – 03/02/2026',
  'from 10:00 to 12:30, 40 s apart',
  'call at 2026-01-31',
  '49.00 EUR',
  '1,234,567.89 EUR',
  '+1000000.00 EUR',
  '0.00012345678 BTC',
  '1 000 000,00 EUR',
  'epoch 3, attempt 1, tasks_left 4',
  '1767225600000',
  '127.0.0.1:8080 and 192.168.0.10',
  '3fa85f64-5717-4562-b3fc-2c963f66afa6',
  '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'version 1.10.2, section 12.3.4',
  'https://triage.example/agents/triage',
  'the bearer of this message; basic troubleshooting was done',
  'password: forgotten',
  'the mobile order was paid by card ending 1111',
  'DE12 is not an IBAN, AB12CDEF34567890 neither',
  'call about order 1234567',
  'refund@once',
];

describe('personal data and credentials in text', () => {
  it.each(PERSONAL)('[R-040][R-057] sees a %s in %j', (rule, text) => {
    expect(findPersonalData(text)).toHaveLength(1);
    const { text: redacted, removed } = redactText(text);
    expect(removed).toEqual([{ rule, count: 1 }]);
    expect(findPersonalData(redacted)).toEqual([]);
  });

  it.each(HARMLESS)('leaves %j alone', (text) => {
    expect(findPersonalData(text)).toEqual([]);
    expect(redactText(text)).toEqual({ text, removed: [] });
  });

  it('[R-058][R-059] masks a transcript and says how often each rule applied, never what was removed', () => {
    const transcript = [
      'Ann: I was charged twice, 49.00 EUR each (pay_A, pay_B).',
      'Ann: reach me at +49 170 1234567 or ann@mail.example, or 0170 1234567.',
      'Bot: Thank you, CASE-7001 is open since 2026-01-31T10:05:00Z.',
    ].join('\n');
    const { text, removed } = redactText(transcript);
    expect(removed).toEqual([
      { rule: 'email', count: 1 },
      { rule: 'phone', count: 2 },
    ]);
    expect(text).toBe(
      transcript
        .replace('+49 170 1234567', '[phone removed]')
        .replace('ann@mail.example', '[email removed]')
        .replace('0170 1234567', '[phone removed]'),
    );
  });

  it('takes time that grows with the text and not faster', () => {
    const hostile = ['0 '.repeat(32_768), 'a@'.repeat(32_768), '-eyJ'.repeat(16_384), 'AA11 '.repeat(13_000)];
    const started = performance.now();
    for (const text of [...hostile, '('.repeat(65_536), '4'.repeat(65_536)]) findPersonalData(text);
    expect(performance.now() - started).toBeLessThan(3_000);
  });
});
