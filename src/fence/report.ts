/** One thing that is wrong with a fence; `relation` is the table or one of its partitions. */
export interface FenceProblem {
  readonly relation: string;
  /** `INSERT`, `UPDATE`, `DELETE`, `TRUNCATE`, or the part of the fence that is not about one of them. */
  readonly about: string;
  readonly state: 'missing' | 'disabled' | 'altered' | 'bypassed';
  readonly problem: string;
}

/** What a look at a fence has found. `ok` is false where one write could get past it. */
export interface FenceReport {
  readonly table: string;
  readonly ok: boolean;
  readonly problems: readonly FenceProblem[];
  /** Who can take the fence away: nothing in the same database stops its owner. */
  readonly notes: readonly string[];
}

export function reportOf(
  table: string,
  problems: readonly FenceProblem[],
  notes: readonly string[],
): FenceReport {
  return { table, ok: problems.length === 0, problems, notes };
}
