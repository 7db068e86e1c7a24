import { type Contract, checkAnswer } from '../contract/index.js';
import { HoldfastError, type Limits } from '../core/index.js';
import { buildAnswerMessage, parseAnswerPart, scanAnswer } from '../envelope/index.js';
import { faultPoint } from '../faults/index.js';
import { isOpen, type LedgerStore } from '../ledger/index.js';
import type { Delivery } from './delivery.js';
import type { AnswerInput, HandOffResult } from './model.js';

export interface ClarifyOptions {
  readonly ledger: Pick<LedgerStore, 'getOffer' | 'getSentTask' | 'answerQuestion'>;
  readonly delivery: Pick<Delivery, 'answer'>;
  readonly limits: Limits;
  contract(id: string): Contract | null;
}

/**
 * Answers what the receiver of an open offer asks. Only what the contract names leaves; the answer is stored before it is sent, and there is
 * one for each question. Answers how the offer stands then.
 * @throws offer_unknown, offer_decided, contract_missing; question_unknown; answer_invalid, personal_data, fact_unsourced: nothing was stored or sent; duplicate_conflict
 *   where the question has another answer already
 */
export async function answerQuestion(input: AnswerInput, options: ClarifyOptions): Promise<HandOffResult> {
  const { key, facts = [], text } = input;
  const { ledger } = options;
  const offer = await ledger.getOffer(key);
  if (offer === null) {
    throw new HoldfastError('offer_unknown', `There is no offer ${key.handoffId} attempt ${key.attempt}.`);
  }
  if (!isOpen(offer)) throw new HoldfastError('offer_decided', undefined, { data: { state: offer.state } });
  const contract = options.contract(offer.contract);
  if (!contract) throw new HoldfastError('contract_missing', `No contract ${offer.contract} is configured.`);
  const task = await ledger.getSentTask(key);
  if (task?.question == null) throw new HoldfastError('question_unknown');
  const { n } = task.question;
  const { root, caseId: case_id } = offer.ref;
  const part = parseAnswerPart(
    JSON.parse(
      JSON.stringify({
        ...{ root, case_id, handoff_id: key.handoffId, attempt: key.attempt, n },
        facts,
        ...(text === undefined ? {} : { text }),
      }),
    ),
    options.limits,
  );
  await checkAnswer(contract, part.facts);
  scanAnswer(part, contract);
  const message = JSON.stringify(buildAnswerMessage(part, task.taskId));
  await ledger.answerQuestion({ key, n, message, facts: part.facts.map((fact) => fact.key) });
  faultPoint('A1.after_commit');
  return options.delivery.answer(key);
}
