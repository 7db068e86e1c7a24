/** What redaction kept back: where it stood and by which rule, never what it was. */
export interface Withheld {
  readonly path: string;
  readonly rule: string;
}
