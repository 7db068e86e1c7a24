// What a case is called says what becomes of it; here for cases that are not decided at once, or by nobody.
import { setTimeout as sleep } from 'node:timers/promises';

/** Between two looks at what is asked, and at what waits for a decision. */
const LOOK_MS = 25;
/** As long as somebody waits to be told how it was decided. */
const WAIT_MS = 20_000;

/** What is to become of it at this handover. */
export function askedFor({ caseId, envelope }) {
  const [, what, leg] = /^([A-Z]+)(\d)-/.exec(caseId) ?? [];
  return Number(leg) === envelope.epoch ? what : null;
}

/** To whom it is offered, and how. The decliner takes nothing. */
export function wayOf(what, peer, decliner) {
  if (what === 'QUEUE') return { to: peer, waiting: 'queued' };
  if (what === 'LIST') return { to: [decliner, peer] };
  if (what === 'PERSON') return { to: [decliner, peer], escalateTo: 'ann' };
  return { to: peer };
}

/** How an offer stands that its receiver has stored, once that has decided. */
export async function untilDecided(holdfast, result) {
  if (result.state !== 'open' || result.task === undefined) return result;
  const { key } = result.offer;
  for (const until = Date.now() + WAIT_MS; Date.now() < until; await sleep(LOOK_MS)) {
    const { closedAt } = await holdfast.ledger.getOffer(key);
    if (closedAt !== null) return holdfast.resend(key);
  }
  return result;
}

/** Answers what is asked about cases, in whichever life of this process they were offered; `next` says which, while there is something to do. */
export async function keepAnswering(holdfast, next) {
  for (let cases = next(); cases !== null; cases = next()) {
    for (const caseId of cases)
      if (caseId.startsWith('ASK')) await answer(holdfast, caseId).catch(() => null);
    await sleep(LOOK_MS);
  }
}

async function answer(holdfast, caseId) {
  const [out] = await holdfast.ledger.listOffers('default', { caseId, open: true, limit: 1 });
  const task = out === undefined ? null : await holdfast.ledger.getSentTask(out.key);
  if (task === null || task.question === null || task.answer?.n === task.question.n) return;
  await holdfast.answerQuestion({ key: out.key, text: 'Through the shop.' });
}
