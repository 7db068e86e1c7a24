import type { Command } from 'commander';
import { ERROR_TABLE, type ErrorCode } from '../../core/index.js';
import { EXIT_MEANINGS, exitCodeOf } from '../exit-codes.js';
import { printTable } from '../print.js';
import { type CommonOptions, leaf, type Session } from '../run.js';

export function addErrors(program: Command, session: Session): void {
  leaf(program, 'errors', 'list every error code and exit status', ['errors', 'errors --json'], {
    dir: false,
  }).action((options: CommonOptions) =>
    session.finish(options, async () => {
      const errors = Object.entries(ERROR_TABLE).map(([code, { cls, retry, actor, meaning }]) => ({
        code,
        class: cls,
        retry,
        actor,
        exit: exitCodeOf(code as ErrorCode),
        meaning,
      }));
      return {
        json: { errors, exits: EXIT_MEANINGS },
        text: [
          printTable(
            ['CODE', 'CLASS', 'RETRY', 'WHO ACTS', 'EXIT', 'MEANING'],
            errors.map((one) => [one.code, one.class, one.retry, one.actor, String(one.exit), one.meaning]),
          ),
          '',
          printTable(['EXIT', 'MEANING'], Object.entries(EXIT_MEANINGS)),
        ].join('\n'),
      };
    }),
  );
}
