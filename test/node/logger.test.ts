import { describe, expect, it } from 'vitest';
import { HoldfastError } from '../../src/core/index.js';
import { createLogger } from '../../src/node/index.js';

function logged(write: (logger: ReturnType<typeof createLogger>) => void, debug = false): string {
  let text = '';
  write(
    createLogger({
      level: 'info',
      agent: 'triage',
      debug,
      destination: {
        write: (line) => {
          text += line;
        },
      },
    }),
  );
  return text;
}

describe('the log', () => {
  it('[R-153] holds no credential, wherever one slips in', () => {
    const text = logged((logger) => {
      logger.info({ authorization: 'Bearer CANARY-1', headers: { authorization: 'CANARY-2' } }, 'one');
      logger.warn({ token: 'CANARY-3', request: { token: 'CANARY-4' } }, 'two');
      logger.error(
        { url: 'https://a.example/evidence/x/1?aud=b&sig=CANARY-5&exp=1' },
        'three Bearer CANARY-6',
      );
      logger.error({ err: new Error('GET /evidence/x?sig=CANARY-7 failed') }, 'four');
      logger.info({ ledger: 'postgres://ann:CANARY-8@db/name' }, 'five postgresql://ann:CANARY@9@db/name');
    });
    expect(text).not.toContain('CANARY');
    expect(text).toContain('aud=b&sig=[removed]&exp=1');
    expect(text).toContain('postgres://ann:[removed]@db/name');
  });

  it('writes JSON lines with a level and a time', () => {
    const line = JSON.parse(logged((logger) => logger.info({ handoff: 'CASE-1:2' }, 'handoff accepted')));
    expect(line).toMatchObject({
      level: 'info',
      node: 'triage',
      handoff: 'CASE-1:2',
      msg: 'handoff accepted',
    });
    expect(line.time).toMatch(/Z$/);
  });

  it('[R-153] says where an error comes from, and its words only where somebody debugs', () => {
    class PaymentError extends Error {
      override readonly name = 'PaymentError';
      readonly code = 'ECONNRESET';
    }
    const cause = new PaymentError('CANARY pay_A\n    at CANARY:1:1');
    const own = new HoldfastError('outcome_unknown', 'It is not known whether k happened.', { cause });
    const write = (logger: ReturnType<typeof createLogger>) => logger.error({ err: own }, 'work stopped');
    const line = logged(write);
    expect(line).not.toContain('CANARY');
    expect(JSON.parse(line).err).toMatchObject({
      code: 'outcome_unknown',
      message: 'It is not known whether k happened.',
      cause: {
        name: 'PaymentError',
        code: 'ECONNRESET',
        stack: expect.stringMatching(/^ {4}at .*logger\.test\.ts/),
      },
    });
    expect(JSON.parse(logged(write, true)).err.cause.message).toContain('CANARY pay_A');
    expect(logged((logger) => logger.error({ err: 'CANARY' }, 'thrown'))).not.toContain('CANARY');
  });
});
