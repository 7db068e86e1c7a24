import { readdirSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { HoldfastError, type JsonObject } from '../../src/core/index.js';
import {
  parseReceiptClaims,
  parseReceiptPart,
  parseRejectionPart,
  renderJsonSchemas,
} from '../../src/envelope/index.js';
import { BILLING, TRIAGE } from './fixtures.js';

const folder = new URL('../../schemas/', import.meta.url);
const schemas = renderJsonSchemas();
const ajv = new Ajv2020({ strict: true, allErrors: true });

describe('the published JSON Schemas', () => {
  it('are the ones that the code stands for; `npm run schemas` writes them anew', () => {
    expect(readdirSync(folder).sort()).toEqual(Object.keys(schemas).sort());
    for (const [name, schema] of Object.entries(schemas)) {
      expect(JSON.parse(readFileSync(new URL(name, folder), 'utf8'))).toEqual(schema);
    }
  });
});

const identity = { root: TRIAGE, case_id: 'CASE-7001', handoff_id: 'CASE-7001:4', attempt: 1 };
const receipt: JsonObject = {
  accepted: true,
  ...identity,
  epoch: 4,
  work_item: 'work_1',
  receipt: 'aGVh.ZGVy.c2ln',
};
const rejection: JsonObject = {
  accepted: false,
  ...identity,
  code: 'records_disagree',
  reason: 'pay_B is not known here.',
  fields: [{ path: 'facts.payment_b', problem: 'is unknown' }],
  retryable: true,
  hint: 'Ask https://claims.example',
  final: true,
};

function agree(name: string, parse: (value: unknown) => unknown, document: JsonObject): boolean {
  const validate = ajv.getSchema(name) ?? ajv.compile({ ...schemas[name], $id: name });
  let read = true;
  try {
    parse(document);
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    read = false;
  }
  expect(validate(document)).toBe(read);
  return read;
}

describe('answers', () => {
  it.each<[boolean, JsonObject]>([
    [true, {}],
    [false, { accepted: false }],
    [false, { epoch: 0 }],
    [false, { receipt: 'not a jws' }],
    [false, { work_item: '' }],
    [false, { extra: 1 }],
  ])('a receipt part is read (%s) with %j, and its schema agrees', (good, change) => {
    expect(agree('receipt-v1.schema.json', parseReceiptPart, { ...receipt, ...change })).toBe(good);
  });

  const { root, case_id, handoff_id, attempt, hint, ...anonymous } = rejection;
  it.each<[boolean, JsonObject]>([
    [true, rejection],
    [true, anonymous],
    [true, { ...rejection, fields: [] }],
    [false, { ...rejection, fields: Array(4).fill({ path: 'a', problem: 'b' }) }],
    [false, { ...rejection, fields: [{ path: 'a' }] }],
    [false, { ...rejection, code: 'No' }],
    [false, { ...rejection, accepted: true }],
    [false, { ...anonymous, final: 'yes' }],
    [false, { ...rejection, hint: null }],
    [false, { ...rejection, extra: 1 }],
  ])('[R-105] a rejection part is read (%s): %j, and its schema agrees', (good, document) => {
    expect(agree('rejection-v1.schema.json', parseRejectionPart, document)).toBe(good);
  });

  it('claims of a receipt have one form', () => {
    const claims = {
      iss: BILLING,
      ...identity,
      from_agent: TRIAGE,
      to_agent: BILLING,
      old_epoch: 3,
      new_epoch: 4,
      digest: 'a'.repeat(64),
      incarnation: 'inc_1',
      iat: 1769860800,
      jti: 'receipt_1',
    };
    expect(parseReceiptClaims(claims)).toEqual(claims);
    for (const change of [{ digest: 'A'.repeat(64) }, { iat: 1.5 }, { exp: 1 }, { jti: undefined }]) {
      expect(() => parseReceiptClaims({ ...claims, ...change })).toThrow(
        expect.objectContaining({ code: 'receipt_invalid' }),
      );
    }
    expect(() => parseRejectionPart(undefined)).toThrow(expect.objectContaining({ code: 'peer_error' }));
    expect(() => parseReceiptPart(undefined)).toThrow(expect.objectContaining({ code: 'receipt_invalid' }));
  });
});
