/** One line of bounded length: what a peer or a library wrote can hold anything, and goes into answers and logs. */
export function tidy(text: string, maxChars: number): string {
  return text.replace(/\p{Cc}/gu, '?').slice(0, maxChars);
}
