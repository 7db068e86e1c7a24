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
  ['phone', '+49\u200c170\u200d1234567'],
  ['phone', '+49\u2063170\u20641234567'],
  ['phone', '\u202e+4917\u200e01234567\u202c'],
  ['phone', '+49 170 12\ufe0f34567'],
  ['phone', '\u{e0030}+49\u{e0001}1701234567'],
  ['phone', '+٤٩ ١٧٠ ١٢٣٤٥٦٧'],
  ['phone', '+४९ १७० १२३४५६७'],
  ['phone', '+𝟒𝟗 𝟏𝟕𝟎 𝟏𝟐𝟑𝟒𝟓𝟔𝟕'],
  ['phone', '＋④⑨ ①⑦⓪ ①②③④⑤⑥⑦'],
  ['phone', '030\u2010123\u201045678'],
  ['phone', '0151\u221223456789'],
  ['phone', '+49 (0) 170 1234567'],
  ['phone', '001 212 555 0123'],
  ['email', 'write to ann.lee+x@mail.example.co.uk.'],
  ['email', 'ann\u200b.lee@mail\u200d.example'],
  ['email', 'ann.lee﹫mail．example'],
  ['email', '"ann"@mail.example'],
  ['email', 'o’neill@mail.example'],
  ['email', 'ann@xn--bro-hoa.xn--p1ai'],
  ['email', 'jürgen@büro.example'.normalize('NFD')],
  ['email', 'jürgen@büro.example'],
  ['iban', 'DE89 3704 0044 0532 0130 00'],
  ['iban', 'to GB82WEST12345698765432 please'],
  ['iban', 'NL91ABNA0417164300 PAID'],
  ['iban', 'DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000'],
  ['iban', 'de89370400440532013000'],
  ['card', '4111 1111 1111 1111'],
  ['card', '5500-0000-0000-0004'],
  ['card', '4111\u202f1111\u202f1111\u202f1111'],
  ['card', '4111.1111.1111.1111'],
  ['card', '4111–1111–1111–1111'],
  ['card', '４１１１ １１１１ １１１１ １１１１'],
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
  'Delivery note 0080012345, SAP document 0090012345.',
  'Serial no. 0012345678 replaced under warranty.',
  'Reference 0000012345 booked.',
  'GTIN 04006381333931 scanned at gate 4, EAN 4006381333931 is out of stock.',
  'Tracking number 1Z999AA10123456784, DHL parcel 00340434161094042557.',
  'Pinned lodash@4.17.21 and react@18.2.0 in the release.',
  '5 units @ 12.50 EUR each, 3@4.00.',
  'The image logo@2x.png is missing.',
  'git@ is not an address; see @billing-team and @ops.',
  'Basic authentication/authorisation was reviewed; bearer tokens are rotated.',
  'Basic customer-service/returns training was completed.',
  'The basic subscription/renewal-plan costs 9.99 per month.',
  'Bearer of this letter may collect parcel 42.',
  'Please reset the password: instructions were sent by post.',
  'Password policy: minimum-length 12, rotate every 90 days.',
  'API key: rotated-by-security. Secret: none needed for this step.',
  'https://shop.example.com/reset?token=expired was reported as broken.',
  'https://shop.example.com/terms?version=2026-01&lang=de',
  'Range 100 200 3000 4000 kWh, meter 12 345 678.',
  '07/2026 08/2026 09/2026 are open periods.',
  'Ratio 0:1:2:3:4:5:6:7, score 0-1-2-3-4-5-6-7, choice 0/1/2/3/4/5/6/7/8.',
  'Room 0.12.345.678, coordinates 52.520008, 13.404954.',
  'Purchase order 4500012345, item 00010, plant 1000.',
  'Amount 1.234.567,89 EUR on cost centre 4711-0815.',
  'VAT ID DE123456789, HRB 12345, tax number 21/815/08150.',
  'ISBN 978-3-16-148410-0 was misprinted.',
  'Flight LH 0400 on 01/02/2026, seats 12A–12C.',
  'Opening hours 09:00–12:00, 13:00–17:00; 30 min per slot.',
  'Order numbers 123-456-7890-01 and 555-1234.',
  'Contract 2024-07-15/0001-A extended to 2027-07-14.',
  'Batch 2026.03.01.0001 to 2026.03.01.0999.',
  'Telephone support closed the case; the phone number was verified.',
  'Mobile app 5.2.1 (build 20260301) crashed twice.',
  'Cell B12 to D480 of the sheet, fax 2 pages to accounting.',
  'The tel. 3 contract lines were cancelled; Handy 3-pack out of stock.',
  'Exchange rate 1 EUR = 1.0834 USD as of 31.03.2026.',
  'SLA 99.95 %, RTO 4 h, RPO 15 min, 12.5 % discount, 1e-7 ppm.',
  'Postal code 10115 Berlin, house number 12-14, size 38/40/42.',
  'µs latency, ½ price, ① first, ② second, № 5, 20 m².',
  'Team 👩‍💻 fixed it 👍🏽, naïve café — “quoted”… done.',
  'Ligatures ﬁne, RTL \u200fשלום, Arabic order ١٢٣٤.',
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

  it('[R-058] masks what is hidden and leaves every other character as it was', () => {
    const text = 'Ann … ½ off 👩‍💻: ＋４９\u200b１７０ 1234567\u200b, ﬁne; ann﹫mail.example – “thanks”';
    expect(redactText(text).text).toBe(
      'Ann … ½ off 👩‍💻: [phone removed]\u200b, ﬁne; [email removed] – “thanks”',
    );
  });

  it('takes time that grows with the text and not faster', () => {
    const hostile = ['0 '.repeat(32_768), 'a@'.repeat(32_768), '-eyJ'.repeat(16_384), 'AA11 '.repeat(13_000)];
    const started = performance.now();
    for (const text of [...hostile, '('.repeat(65_536), '4'.repeat(65_536), '４'.repeat(65_536)])
      findPersonalData(text);
    expect(performance.now() - started).toBeLessThan(3_000);
  });
});
