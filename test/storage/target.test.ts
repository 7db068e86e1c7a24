import { describe, expect, it } from 'vitest';
import { redactUrl, resolveTarget, targetProblem } from '../../src/storage/index.js';

describe('where a ledger is', () => {
  it.each([
    'ledger.db',
    '/var/lib/holdfast/ledger.db',
    'postgres://u:p@db/name',
    'postgresql://db:5433/name?sslmode=require',
  ])('is a file or a PostgreSQL database: %s', (target) => expect(targetProblem(target)).toBeNull());

  it.each([
    ['', /file path/],
    ['mysql://db/name', /file path/],
    ['file:///ledger.db', /file path/],
    ['a\0b', /file path/],
    ['postgres:ledger', /must be a URL/],
    ['postgres://u:p%zz@ho st/name', /must be a URL/],
    ['postgres://u@db', /must name a database/],
    ['postgresql://u@db/', /must name a database/],
  ])('is not %j', (target, problem) => expect(targetProblem(target)).toMatch(problem));

  it('is shown without a password', () => {
    const shown = redactUrl(
      'postgres://ann:s3cret%21@db:5433/name?sslmode=require&password=s3cret&sslpassword=s3cret',
    );
    expect(shown).not.toContain('s3cret');
    expect(shown).toContain('ann:***@db:5433/name?sslmode=require');
    expect(redactUrl('postgres://ann:s3cret@ho st/name')).not.toContain('s3cret');
    expect(redactUrl('postgres://ann@db/name')).toBe('postgres://ann@db/name');
    expect(redactUrl('ledger.db')).toBe('ledger.db');
  });

  it('is a path from the folder of what names it, or a URL as it stands', () => {
    expect(resolveTarget('/etc/agent', '../ledger.db')).toBe('/etc/ledger.db');
    expect(resolveTarget('/etc/agent', 'postgres://db/name')).toBe('postgres://db/name');
  });
});
