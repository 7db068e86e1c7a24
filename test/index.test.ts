import { expect, it } from 'vitest';
import * as holdfast from '../src/index.js';

it('the package exports exactly what it promises', () => {
  expect(Object.keys(holdfast).sort()).toEqual([
    'ERROR_TABLE',
    'EffectNotDone',
    'HoldfastError',
    'accept',
    'clarify',
    'decideLater',
    'defineContract',
    'isHoldfastError',
    'openHoldfast',
    'parseCaseFile',
    'present',
    'redactText',
    'refundDispute',
    'reject',
  ]);
});
