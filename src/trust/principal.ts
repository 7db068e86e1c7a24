/** Who sent a request, as authentication found; `tokenId` is the jti that proves it in the audit. */
export interface Principal {
  readonly agent: string;
  readonly tenant: string;
  readonly tokenId: string;
}
