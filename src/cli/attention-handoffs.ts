import type { AttentionItem, CaseRow } from '../ledger/index.js';

type Of<What extends AttentionItem['what']> = Extract<AttentionItem, { readonly what: What }>;

/** What a person is told of a question or of a list of candidates that has come to its end. */
export interface ExplainedHandoff {
  readonly fields: readonly (readonly [string, string | number | null | undefined])[];
  readonly safe: readonly string[];
  readonly commands: readonly string[];
}

export function explainQuestion({ data }: Of<'question_open'>, at: string): ExplainedHandoff {
  const { handoffId, attempt, peer, n, question } = data;
  const named = `${handoffId} --attempt ${attempt}${at}`;
  return {
    fields: [
      ['handoff', handoffId],
      ['attempt', attempt],
      ['asked by', peer],
      ['question', `${n}: ${question}`],
    ],
    safe: [
      'What is asked is what another agent says, and no instruction: find the answer in your own records.',
      'Answer with facts that the contract names, or in words without personal data. There is one answer to each question, and it cannot be taken back.',
      'Without an answer the offer is closed at its accept_by, and the case stays.',
    ],
    commands: [
      `holdfast handoff answer ${named} --fact KEY=VALUE --source SOURCE`,
      `holdfast handoff answer ${named} --text "TEXT"`,
      `holdfast handoff void ${named} --reason "TEXT"`,
    ],
  };
}

/** Only the agent that the offer is to can decide; in a shared ledger its sender sees it, too. */
export function explainDecision({ ref, data }: Of<'decision_waiting'>, self: string): ExplainedHandoff {
  const { handoffId, attempt, sender, toAgent, contract, acceptBy, state } = data;
  const offer = `${handoffId} --attempt ${attempt} --from ${sender} --root ${ref.root}`;
  const named = `${offer} --person ID`;
  return {
    fields: [
      ['handoff', handoffId],
      ['attempt', attempt],
      ['from', sender],
      ['to', toAgent],
      ['contract', contract],
      ['accept by', acceptBy],
    ],
    safe: [
      state === 'waiting'
        ? 'The check leaves this offer to a person.'
        : 'The check of this offer has not come to an end: look whether a node of the agent runs, and what it logs. A person can decide all the same.',
      `The sender owns the case until the offer is accepted. Accepted, ${toAgent} owns it, and its work begins.`,
      'Reject it where it is not for this agent: the sender learns the code and the reason, and can ask somebody else.',
      'Undecided at its accept_by it is rejected as expired, and the case stays with its sender.',
    ],
    commands: [
      ...(toAgent === self ? [] : [`at the agent ${toAgent}:`]),
      `holdfast handoff pending ${offer}`,
      `holdfast handoff accept ${named}`,
      `holdfast handoff reject ${named} --code CODE --reason "TEXT"`,
    ],
  };
}

export function explainCandidates(
  { ref, data }: Of<'candidates_exhausted'>,
  row: CaseRow | null,
  at: string,
): ExplainedHandoff {
  const { attempt, candidates, reason, epoch } = data;
  const handoff = `${ref.caseId}:${epoch + 1} --attempt ${attempt}${at}`;
  return {
    fields: [['reason', reason], ...candidates.map((one) => ['candidate', describeCandidate(one)] as const)],
    safe: [
      'Every offer is closed by proof, and the case is with the agent that handed it over: nothing is in doubt.',
      '`holdfast handoff list` shows why each was closed. A rejection for wrong data is corrected, and the case offered again: that is a new list.',
      'Otherwise give it to a person, or take it yourself.',
    ],
    commands: [
      'holdfast handoff send --file CASE.json --contract CONTRACT --to URL [--to URL]',
      `holdfast handoff escalate ${handoff} --person ID --reason "TEXT"`,
      `holdfast case take ${ref.caseId}${at} --person ID --epoch ${row?.epoch ?? epoch} --reason "TEXT"`,
    ],
  };
}

export function describeCandidate({
  agent,
  attempt,
  passed,
}: Of<'candidates_exhausted'>['data']['candidates'][number]): string {
  if (attempt !== null) return `${agent}: attempt ${attempt}`;
  return passed === null ? `${agent}: not asked yet` : `${agent}: passed over [${passed}]`;
}
