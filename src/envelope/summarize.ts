import { canonical, formatMoney, isJsonObject, type JsonValue } from '../core/index.js';
import type { EnvelopeSummary, Fact, HandoffEnvelope } from './model.js';

type SummaryFields = Pick<
  HandoffEnvelope,
  'goal' | 'done' | 'remaining' | 'facts' | 'open_questions' | 'constraints' | 'references'
>;

const MAX_CHARACTERS = 2000;
const MAX_VALUE_CHARACTERS = 160;
const LABEL = 'Generated from structured fields; where it differs from a field, the field counts.';

function clip(text: string): string {
  const characters = [...text.replace(/\s+/g, ' ').trim()];
  return characters.length <= MAX_VALUE_CHARACTERS
    ? characters.join('')
    : `${characters.slice(0, MAX_VALUE_CHARACTERS - 1).join('')}…`;
}

function show(value: JsonValue): string {
  if (typeof value === 'string') return clip(value);
  if (!isJsonObject(value)) return clip(canonical(value));
  const pairs = Object.entries(value).map(
    ([key, each]) => `${key} ${typeof each === 'string' ? each : canonical(each)}`,
  );
  return clip(pairs.join(', '));
}

function showFact(fact: Fact): string {
  return `${fact.key} = ${show(fact.value)} (${fact.source})`;
}

function showConstraints(constraints: HandoffEnvelope['constraints']): string[] {
  return [
    ...(constraints.deadline === undefined ? [] : [`deadline ${constraints.deadline}`]),
    ...Object.entries(constraints.caps).map(([operation, cap]) => `${operation} at most ${formatMoney(cap)}`),
    ...constraints.prohibitions.map((operation) => `no ${operation}`),
  ];
}

/**
 * A labelled text of at most 2,000 characters, the same for the same fields, verified facts before claims. It is never made
 * from a transcript; what does not fit is left out whole.
 */
export function summarize(fields: SummaryFields): EnvelopeSummary {
  const references = fields.references.map(
    (each) => `${each.filename} (${each.media_type}, ${each.bytes} bytes)`,
  );
  const sections: [field: string, title: string, entries: string[]][] = [
    ['goal', 'Goal', [clip(fields.goal)]],
    ['facts', 'Verified', fields.facts.filter((fact) => fact.verified).map(showFact)],
    ['facts', 'Claimed, not verified', fields.facts.filter((fact) => !fact.verified).map(showFact)],
    ['done', 'Done', fields.done.map(clip)],
    ['remaining', 'Remaining', fields.remaining.map(clip)],
    ['open_questions', 'Open', fields.open_questions.map(clip)],
    ['constraints', 'Limits', showConstraints(fields.constraints)],
    ['references', 'Evidence', references],
  ];
  const from = new Set<string>();
  let text = LABEL;
  for (const [field, title, entries] of sections) {
    entries.forEach((entry, at) => {
      const piece = at === 0 ? `\n${title}: ${entry}` : `; ${entry}`;
      if ([...text, ...piece].length > MAX_CHARACTERS) return;
      text += piece;
      from.add(field);
    });
  }
  return { text, generated_from: [...from] };
}
