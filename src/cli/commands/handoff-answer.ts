import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import {
  DEFAULT_LIMITS,
  HoldfastError,
  isJsonObject,
  type JsonValue,
  parseStrictJson,
} from '../../core/index.js';
import type { Fact } from '../../envelope/index.js';
import { ROOT_OPTION } from '../cases.js';
import { reportOf } from '../handoff-report.js';
import { findOffer } from '../offers.js';
import { type CommonOptions, leaf, type Session } from '../run.js';

interface AnswerOptions extends CommonOptions {
  attempt?: string;
  root?: string;
  fact?: string[];
  source?: string;
  verified?: boolean;
  file?: string;
  text?: string;
}

export function addAnswer(commands: Command, session: Session): void {
  leaf(
    commands,
    'answer <handoff>',
    'answer what the receiver asks before it decides; one answer to each question',
    [
      'handoff answer CASE-7001:2 --fact reason=duplicate_capture --source support --dir triage',
      'handoff answer CASE-7001:2 --file answer.json --text "The second payment is meant." --dir triage',
    ],
  )
    .option('--fact <key=value...>', 'a fact that the contract names; the value is JSON, or else a text')
    .option('--source <name>', 'who says so; required with --fact')
    .option('--verified', 'the facts of --fact were verified at their source')
    .option('--file <facts.json>', 'facts as in a case file: an array, or an object with `facts`')
    .option('--text <text>', 'the answer in words, without personal data')
    .option('--attempt <n>', 'which attempt (default: the last)')
    .option(...ROOT_OPTION)
    .action((handoffId: string, options: AnswerOptions) =>
      session.withAgent(options, async (holdfast) => {
        const facts = [...factsOf(options), ...(await factsIn(options.file))];
        const { text } = options;
        if (facts.length === 0 && text === undefined)
          throw new HoldfastError('usage', 'Answer with --fact, --file or --text.');
        const { key } = await findOffer(holdfast, handoffId, options);
        return reportOf(
          await holdfast.answerQuestion({ key, facts, ...(text === undefined ? {} : { text }) }),
        );
      }),
    );
}

function factsOf({ fact = [], source, verified = false }: AnswerOptions): Fact[] {
  return fact.map((given) => {
    const at = given.indexOf('=');
    if (at < 1) throw new HoldfastError('usage', '--fact is KEY=VALUE, such as reason=duplicate_capture.');
    if (source === undefined) throw new HoldfastError('usage', '--fact needs --source: who says so.');
    return { key: given.slice(0, at), value: jsonOrText(given.slice(at + 1)), source, verified };
  });
}

function jsonOrText(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}

async function factsIn(file: string | undefined): Promise<Fact[]> {
  if (file === undefined) return [];
  let value: JsonValue;
  try {
    value = parseStrictJson(await readFile(file), DEFAULT_LIMITS);
  } catch (cause) {
    throw new HoldfastError('usage', `${file} cannot be read as JSON.`, { cause });
  }
  const facts = isJsonObject(value) ? value.facts : value;
  if (!Array.isArray(facts)) throw new HoldfastError('usage', `${file} holds no array of facts.`);
  // What form they have is judged where the answer is made.
  return facts as unknown as Fact[];
}
