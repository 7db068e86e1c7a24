import * as z from 'zod';
import * as form from '../forms.js';

const reference = z.strictObject({
  url: form.url,
  media_type: form.mediaType,
  filename: form.filename,
  bytes: z.int().min(0),
  sha256: form.sha256,
  artifact_id: form.opaqueId,
  version: form.positive,
  expires_at: form.utc,
});

const effect = z.strictObject({
  key: form.text(200),
  status: z.enum(['started', 'done', 'failed', 'unknown']),
  operation: form.operation,
  amount: form.money.exactOptional(),
});

const chain = z.strictObject({
  hops: z.array(form.agentUrl).max(50),
  tasks_left: z.int().min(0),
  spend_left: form.money.exactOptional(),
});

const summary = z.strictObject({
  text: form.text(2000),
  generated_from: z.array(form.text(100)).max(50),
});

const identity = {
  version: z.literal(2),
  root: form.agentUrl,
  incarnation: form.opaqueId,
  case_id: form.caseId,
  kind: form.kind,
  handoff_id: form.handoffId,
  attempt: form.positive,
  from_agent: form.agentUrl,
  to_agent: form.agentUrl,
  epoch: form.epoch,
  contract: form.nameVersion,
  skill: form.skill,
};
const trace = z.strictObject({ traceparent: form.traceparent });

/** Everything about the case. */
export const richV2Schema = z
  .strictObject({
    ...identity,
    goal: form.text(500),
    done: form.textList,
    remaining: form.textList,
    facts: z.array(form.fact).max(100),
    open_questions: form.textList,
    constraints: form.constraints,
    required_output: form.nameVersion.exactOptional(),
    artifact: form.artifactPointer.exactOptional(),
    source_task_id: form.opaqueId.exactOptional(),
    summary,
    references: z.array(reference).max(50),
    effects: z.array(effect).max(200),
    accept_by: form.utc,
    chain,
    provenance: z.array(form.compactJws).max(50),
    trace,
  })
  .meta({ title: 'Rich: the envelope says what there is to know about the case.' });

/** Which case it is, and nothing about it. */
export const thinV2Schema = z
  .strictObject({ ...identity, accept_by: form.utc, chain, trace })
  .meta({ title: 'Thin: the receiver reads the case in the system of record.' });

export const envelopeV2Schema = z.union([richV2Schema, thinV2Schema]).meta({
  title: 'Holdfast handoff envelope, version 2',
  description: 'The JSON document that carries one offer of one case from one agent to another.',
});
