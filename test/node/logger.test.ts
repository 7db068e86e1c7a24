import { describe, expect, it } from 'vitest';
import { createLogger } from '../../src/node/index.js';

function logged(write: (logger: ReturnType<typeof createLogger>) => void): string {
  let text = '';
  write(
    createLogger({
      level: 'info',
      agent: 'triage',
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
    });
    expect(text).not.toContain('CANARY');
    expect(text).toContain('aud=b&sig=[removed]&exp=1');
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
});
