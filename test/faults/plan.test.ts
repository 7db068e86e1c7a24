import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { armFaults, FAULT_POINTS, faultHits, faultPoint, faultsEnabled } from '../../src/faults/index.js';

const DOOR = JSON.stringify(join(import.meta.dirname, '../../src/faults/index.ts'));

/** Hits a point three times in a process started with HOLDFAST_FAULTS, and says how that ended. */
function started(faults: string | null, last = '') {
  const script = `
    import { armFaults, faultHits, faultPoint } from ${DOOR};
    for (let i = 1; i <= 3; i++) {
      const began = performance.now();
      try {
        faultPoint('R3.after_commit');
        console.log(i, performance.now() - began >= 40 ? 'late' : 'passed');
      } catch (error) {
        console.log(i, error.message);
      }
    }
    ${last}`;
  const { HOLDFAST_FAULTS: _, ...env } = process.env;
  const ran = spawnSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
    env: { ...env, ...(faults === null ? {} : { HOLDFAST_FAULTS: faults }) },
    encoding: 'utf8',
    timeout: 20_000,
  });
  return { out: ran.stdout.trim().split('\n'), err: ran.stderr, signal: ran.signal, status: ran.status };
}

describe('a fault point', () => {
  it('does nothing, and cannot be armed, in a process that was not started for it', () => {
    expect(faultsEnabled).toBe(false);
    faultPoint('R3.after_commit');
    expect(faultHits()).toEqual({});
    expect(() => armFaults('R3.after_commit=kill9')).toThrow(/HOLDFAST_FAULTS/);
    expect(Object.keys(FAULT_POINTS).length).toBeGreaterThanOrEqual(30);
  });

  it('fails at the hit that is named, and at every one where none is', () => {
    expect(started('R3.after_commit=throw@2').out).toEqual([
      '1 passed',
      '2 a fault was injected at R3.after_commit',
      '3 passed',
    ]);
    expect(started('R4.before_answer=throw;R3.after_commit=delay(50)').out).toEqual([
      '1 late',
      '2 late',
      '3 late',
    ]);
    expect(started('R3.after_commit=busy(50)@3').out).toEqual(['1 passed', '2 passed', '3 late']);
  });

  it('kills the process there and then', () => {
    const { out, signal } = started('R3.after_commit=kill9@2');
    expect({ out, signal }).toEqual({ out: ['1 passed'], signal: 'SIGKILL' });
  });

  it('is only counted until a test arms it', () => {
    const rearmed = `
      console.log(JSON.stringify(faultHits()));
      armFaults('R3.after_commit=kill9@1');
      console.log(JSON.stringify(faultHits()));
      faultPoint('R3.after_commit');`;
    const { out, signal } = started('count', rearmed);
    expect(out).toEqual(['1 passed', '2 passed', '3 passed', '{"R3.after_commit":3}', '{}']);
    expect(signal).toBe('SIGKILL');
  });

  it.each(['R3.after_comit=kill9', 'R3.after_commit=kill', 'toString=throw'])(
    'refuses %s at the start',
    (faults) => {
      const { out, err, status } = started(faults);
      expect({ out, status }).toEqual({ out: [''], status: 1 });
      expect(err).toContain(`HOLDFAST_FAULTS: "${faults}"`);
    },
  );
});
