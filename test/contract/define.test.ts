import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  BUILT_IN_CONTRACTS,
  type ContractDefinition,
  defineContract,
  refundDispute,
} from '../../src/contract/index.js';
import { HoldfastError } from '../../src/core/index.js';

const valid: ContractDefinition = {
  name: 'parcel-claim',
  version: 2,
  skill: { id: 'claims', name: 'Claims', description: 'Takes claims.', tags: ['claims'] },
  purpose: 'Settle a claim for a lost parcel.',
  facts: { parcel_id: { schema: z.string(), required: true, why: 'Value: short.' } },
  allow: ['goal', 'constraints'],
  constraints: { deadline: true, caps: ['pay'], prohibitions: ['publish'] },
  operations: ['pay'],
  evidence: { min: 0, max: 2, mediaTypes: ['text/plain'], maxBytes: 1000 },
  codes: { parcel_found: 'The parcel has been found.' },
};

function pathsOf(definition: unknown): string[] {
  try {
    defineContract(definition as ContractDefinition);
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    expect(error.code).toBe('contract_invalid');
    return error.fields.map(({ path }) => path);
  }
  return [];
}

describe('a contract', () => {
  it('[R-022] gets the id name/version and cannot be changed afterwards', () => {
    const contract = defineContract(valid);
    expect(contract.id).toBe('parcel-claim/2');
    const frozen = [
      contract,
      contract.skill,
      contract.facts,
      contract.facts.parcel_id,
      contract.allow,
      contract.constraints.caps,
      contract.operations,
      contract.evidence.mediaTypes,
      contract.codes,
    ];
    expect(frozen.map((each) => Object.isFrozen(each))).toEqual(frozen.map(() => true));
    expect(Object.isFrozen(valid.allow)).toBe(false);
  });

  it('takes any Standard Schema, also one that is a function', () => {
    const callable = Object.assign(() => true, {
      '~standard': { version: 1 as const, vendor: 'own', validate: (value: unknown) => ({ value }) },
    });
    expect(pathsOf({ ...valid, facts: { a: { schema: callable, required: true, why: 'x' } } })).toEqual([]);
  });

  it('names every problem at once', () => {
    const paths = pathsOf({
      ...valid,
      name: 'Parcel Claim',
      version: 0,
      purpose: ' ',
      operations: ['pay', 'pay'],
    });
    expect(paths).toEqual(['name', 'version', 'purpose', 'operations.1']);
  });

  const fact = valid.facts.parcel_id;
  it.each<[string, unknown, string[]]>([
    ['no object', null, ['']],
    ['a skill without tags', { skill: { ...valid.skill, tags: [] } }, ['skill.tags']],
    ['a fact without a schema', { facts: { a: { ...fact, schema: {} } } }, ['facts.a.schema']],
    ['a fact without a why', { facts: { a: { ...fact, why: '' } } }, ['facts.a.why']],
    ['a fact with an odd name', { facts: { 'a b': fact } }, ['facts.a b']],
    ['a fact with no sources', { facts: { a: { ...fact, sources: [] } } }, ['facts.a.sources']],
    [
      'a fact that is personal and logged',
      { facts: { a: { ...fact, personal: true, loggable: true } } },
      ['facts.a.loggable'],
    ],
    ['an unknown field to allow', { allow: ['constraints', 'transcript'] }, ['allow']],
    ['constraints required but not allowed', { allow: ['goal'] }, ['allow']],
    [
      'a cap on nothing it may do',
      { constraints: { deadline: false, caps: ['ship'], prohibitions: [] } },
      ['constraints.caps.0'],
    ],
    [
      'a prohibition of what it may do',
      { constraints: { deadline: false, caps: [], prohibitions: ['pay'] } },
      ['constraints.prohibitions.0'],
    ],
    ['bounds turned round', { evidence: { ...valid.evidence, min: 3 } }, ['evidence.min']],
    ['a negative bound', { evidence: { ...valid.evidence, min: -1 } }, ['evidence.min']],
    ['no size', { evidence: { ...valid.evidence, maxBytes: 0 } }, ['evidence.maxBytes']],
    [
      'a media type that is none',
      { evidence: { ...valid.evidence, mediaTypes: ['text'] } },
      ['evidence.mediaTypes.0'],
    ],
    ['an output without version', { requiredOutput: 'decision' }, ['requiredOutput']],
    [
      'an output with a name longer than an envelope takes',
      { requiredOutput: `${'decision-'.repeat(9)}a/1` },
      ['requiredOutput'],
    ],
    ['an output that is no schema', { output: { type: 'object' } }, ['output']],
    ['an odd code', { codes: { No: 'x' } }, ['codes.No']],
    ['a code that has a meaning', { codes: { case_closed: 'x' } }, ['codes.case_closed']],
    ['a check that is none', { accept: true }, ['accept']],
  ])('is refused with %s', (_, change, paths) => {
    expect(pathsOf(change === null ? null : { ...valid, ...(change as object) })).toEqual(paths);
  });

  it('[R-052] says for each fact why it crosses as a value or a reference', () => {
    expect(BUILT_IN_CONTRACTS).toContain(refundDispute);
    for (const { facts } of BUILT_IN_CONTRACTS) {
      for (const { why } of Object.values(facts)) expect(why).toMatch(/^(Value|Reference): /);
    }
  });
});
