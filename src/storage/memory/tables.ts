import { HoldfastError } from '../../core/index.js';

type Key = readonly (string | number)[];

/** Takes back what was changed since `begin`, so that a method is all or nothing here as well. */
export class Journal {
  readonly #undo: (() => void)[] = [];

  begin(): void {
    this.#undo.length = 0;
  }

  rollback(): void {
    while (this.#undo.length > 0) this.#undo.pop()?.();
  }

  table<Row>(): Table<Row> {
    return new Table<Row>((undo) => this.#undo.push(undo));
  }
}

/** Rows by key, in the order in which they were first put. */
export class Table<Row> {
  readonly #rows = new Map<string, Row>();
  readonly #onChange: (undo: () => void) => void;

  constructor(onChange: (undo: () => void) => void) {
    this.#onChange = onChange;
  }

  get(...key: Key): Row | null {
    return this.#rows.get(JSON.stringify(key)) ?? null;
  }

  /** Takes over all rows of another, as copies of its own. */
  copyFrom(other: Table<Row>): void {
    for (const [id, row] of other.#rows) this.#rows.set(id, structuredClone(row));
  }

  all(): Row[] {
    return [...this.#rows.values()];
  }

  where(matches: (row: Row) => boolean): Row[] {
    return this.all().filter(matches);
  }

  put(row: Row, ...key: Key): void {
    const id = JSON.stringify(key);
    const before = this.#rows.get(id);
    this.#rows.set(id, row);
    this.#onChange(() => {
      if (before === undefined) this.#rows.delete(id);
      else this.#rows.set(id, before);
    });
  }

  /** Puts a row whose key must be free. */
  add(row: Row, ...key: Key): void {
    if (this.get(...key) !== null) throw new HoldfastError('internal', 'The key is in use.');
    this.put(row, ...key);
  }

  /** Puts a row in the place of one that must be there, and as expected. */
  replace(row: Row, expected: (before: Row) => boolean, ...key: Key): void {
    const before = this.get(...key);
    if (before === null || !expected(before)) {
      throw new HoldfastError('internal', 'An invariant of the ledger does not hold.');
    }
    this.put(row, ...key);
  }

  /** Rows that must go; their order among the others is lost with them. */
  remove(matches: (row: Row) => boolean): void {
    for (const [id, row] of this.#rows) {
      if (!matches(row)) continue;
      this.#rows.delete(id);
      this.#onChange(() => this.#rows.set(id, row));
    }
  }
}
