/** Names that cross between agents: one pattern for the documents, the contracts and the configuration that hold them. */

/** A kind, a tenant, an agent's short name. */
export const NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
/** `name/version` of a contract or of what it makes the receiver produce, at most 80 characters. */
export const CONTRACT_ID_PATTERN = /^(?=[\s\S]{1,80}$)[a-z][a-z0-9]*(?:-[a-z0-9]+)*\/[1-9][0-9]{0,3}$/;
export const SKILL_PATTERN = /^[a-z][a-z0-9_-]{0,63}$/;
/** An operation on a business system, such as `refund`. */
export const OPERATION_PATTERN = /^[a-z][a-z0-9_.:-]{0,63}$/;
/** A rejection code, of the error table or of a contract's own. */
export const CODE_PATTERN = /^[a-z][a-z0-9_]{2,47}$/;
/** Lower case, without parameters. */
export const MEDIA_TYPE_PATTERN = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/;
/** Lower-case hex. */
export const SHA256_PATTERN = /^[0-9a-f]{64}$/;
/** An agent's or node's URL in its one spelling: lower case, no credentials, query, fragment or trailing slash; at most 500 characters. */
export const AGENT_URL_PATTERN =
  /^(?=[\s\S]{1,500}$)https?:\/\/(?:[a-z0-9][a-z0-9.-]*|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?(?:\/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)*$/;
/** `case_id:epoch+1`: what stands before the colon is the case. */
export const HANDOFF_ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}:[1-9][0-9]{0,15}$/;
