/*
 * Conditions that both databases share, over rows `p` of plans and `s` of sent tasks; `prefix` is the schema's.
 */

/** Of an open offer, asked and not answered. */
export const isAsked = (
  prefix: string,
): string => `s.state = 'TASK_STATE_INPUT_REQUIRED' AND s.question_n IS NOT NULL
  AND coalesce(s.answer_n, 0) <> s.question_n
  AND EXISTS (SELECT 1 FROM ${prefix}offers o WHERE o.tenant = s.tenant AND o.root = s.root AND o.sender = s.sender
    AND o.handoff_id = s.handoff_id AND o.attempt = s.attempt AND o.state IN ('intended', 'offered', 'in_doubt'))`;

/** The case is still where the plan left it. */
export const isCurrent = (
  prefix: string,
): string => `EXISTS (SELECT 1 FROM ${prefix}cases c WHERE c.tenant = p.tenant
    AND c.root = p.root AND c.case_id = p.case_id AND c.status = 'open' AND c.epoch = p.epoch AND c.owner = p.sender)
  AND NOT EXISTS (SELECT 1 FROM ${prefix}offers o WHERE o.tenant = p.tenant AND o.root = p.root AND o.case_id = p.case_id
    AND o.epoch = p.epoch AND o.sender = p.sender AND o.attempt > p.attempt)`;

export const isQuarantined = (prefix: string): string => `EXISTS (SELECT 1 FROM ${prefix}quarantines q
  WHERE q.tenant = p.tenant AND q.root = p.root AND q.case_id = p.case_id)`;
