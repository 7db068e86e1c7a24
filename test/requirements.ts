/**
 * The required behaviours that this project claims, as data: an honest picture of how far it is. A test that shows one cites it in
 * its name, `[R-073] ...`; `requirements.test.ts` fails where a claimed id is cited nowhere, or a cited id is not claimed here.
 */

export type Place = 'sender' | 'receiver' | 'ledger' | 'backend' | 'wire' | 'node' | 'docs';

export interface Requirement {
  readonly where: readonly Place[];
  readonly what: string;
}

export const REQUIREMENTS: Readonly<Record<string, Requirement>> = {
  // Scope
  'R-001': {
    where: ['ledger', 'docs'],
    what: 'Kinds say whose owner may change and name their system of record',
  },

  // The envelope's fields
  'R-022': {
    where: ['wire'],
    what: 'The version is a field and part of the media type; the contract has its own field',
  },
  'R-023': { where: ['wire'], what: 'The case id is stable and independent of every A2A id' },
  'R-024': { where: ['wire'], what: 'The envelope carries a handoff id' },
  'R-025': { where: ['wire'], what: 'The envelope says who hands over and at which epoch' },
  'R-026': { where: ['receiver', 'wire'], what: 'An envelope addressed to someone else is refused' },
  'R-027': { where: ['wire'], what: 'Source and reference tasks are named' },
  'R-028': { where: ['wire'], what: 'The goal is stated' },
  'R-029': { where: ['wire'], what: 'What is done and what remains are short structured fields' },
  'R-030': {
    where: ['sender', 'receiver', 'wire'],
    what: 'Every fact carries its source and whether it is verified',
  },
  'R-031': { where: ['wire'], what: 'Open questions are a field' },
  'R-032': { where: ['wire'], what: 'Deadline, caps and prohibitions are explicit entries' },
  'R-033': { where: ['wire'], what: 'The required output is named' },
  'R-034': { where: ['sender', 'wire'], what: 'The summary is short, capped and labelled as one' },
  'R-035': { where: ['wire'], what: 'A reference names URL, media type, file name, size, hash and expiry' },
  'R-036': { where: ['wire'], what: 'An artifact is named by id, version and digest' },
  'R-037': { where: ['wire'], what: 'Deadlines are absolute, in UTC' },
  'R-038': { where: ['wire'], what: 'The envelope stays small; evidence stays behind references' },
  'R-039': { where: ['wire'], what: 'Hops, the task budget left and a trace id travel along' },
  'R-040': { where: ['sender', 'wire'], what: 'No credential is in an envelope or its evidence' },
  'R-041': { where: ['wire'], what: 'Money is a string and JSON is I-JSON, so that a digest is stable' },

  // The envelope on the wire
  'R-042': {
    where: ['sender', 'wire'],
    what: 'One message: the envelope as one data part, evidence as url parts',
  },
  'R-043': { where: ['sender', 'receiver'], what: 'Bulk and transcripts go by reference, never inline' },
  'R-044': { where: ['receiver'], what: 'Exactly one supported envelope part, or a refusal' },
  'R-045': { where: ['sender', 'receiver'], what: 'Context ids are per peer and never reused for another' },

  // Evidence by reference
  'R-046': { where: ['sender'], what: 'A reference that expires before the acceptance deadline is not sent' },
  'R-047': {
    where: ['receiver'],
    what: 'A missing hash, failed fetch or mismatch refuses the whole handoff',
  },
  'R-050': {
    where: ['receiver'],
    what: 'The fetcher is guarded: hosts, addresses, redirects, size, time, media type',
  },
  'R-051': {
    where: ['receiver'],
    what: 'Checks without network come first; ownership is checked again in the commit',
  },
  'R-052': { where: ['docs'], what: 'For each field it is written down why it is a value or a reference' },

  'R-053': {
    where: ['sender', 'receiver', 'ledger'],
    what: 'A reference can be revoked: before the acceptance the offer is rejected, afterwards it is told',
  },

  // Redaction
  'R-054': { where: ['sender'], what: 'An allow list per contract applies before the message is built' },
  'R-056': {
    where: ['sender', 'docs'],
    what: 'The receiver is across a trust boundary, also inside one company',
  },
  'R-057': { where: ['sender'], what: 'The summary comes from structured fields, not from a transcript' },
  'R-058': { where: ['sender'], what: 'The transcript that is referenced is the redacted one' },
  'R-059': {
    where: ['sender', 'ledger'],
    what: 'What was withheld is recorded by path and rule, without the value',
  },

  // Sender
  'R-060': { where: ['sender', 'ledger'], what: 'The intent is stored before anything is sent' },
  'R-061': { where: ['sender', 'ledger'], what: 'Release only on a verified acceptance' },
  'R-062': {
    where: ['ledger'],
    what: 'Exactly one owner at every instant, also while a case goes to a person or back',
  },
  'R-063': { where: ['sender'], what: 'After acceptance the old owner has only a status pointer' },
  'R-064': {
    where: ['sender', 'ledger'],
    what: 'After a rejection the sender still owns the case at the same epoch',
  },
  'R-065': {
    where: ['sender'],
    what: 'After a crash the sender reads back, then resends the identical bytes',
  },
  'R-066': { where: ['sender'], what: 'The receipt is verified against what was offered before it counts' },

  // Receiver and ledger
  'R-067': { where: ['receiver'], what: 'Every handoff is untrusted and checked in a fixed order' },
  'R-068': { where: ['receiver'], what: 'An unknown version is refused before anything else is read' },
  'R-069': { where: ['receiver', 'wire'], what: 'Schema errors come back as the first three field paths' },
  'R-070': {
    where: ['receiver'],
    what: 'Permission follows the authenticated peer, not what the envelope says',
  },
  'R-071': {
    where: ['receiver', 'ledger'],
    what: 'The peer, the named sender and the current owner are the same',
  },
  'R-072': { where: ['ledger'], what: 'The epoch in the envelope is the one in the ledger' },
  'R-073': {
    where: ['ledger'],
    what: 'A change of owner is one guarded write: compare, set owner, epoch + 1',
  },
  'R-074': {
    where: ['ledger'],
    what: 'A case unknown to the ledger is refused, or registered where the kind has separate ledgers and its chain is proved',
  },
  'R-075': { where: ['ledger'], what: 'Every write carries the epoch; the data layer refuses an older one' },
  'R-076': { where: ['ledger'], what: 'The current epoch presented by anyone but the owner is refused' },
  'R-077': { where: ['receiver'], what: 'Nothing is done before the acceptance is recorded' },
  'R-078': {
    where: ['ledger', 'docs'],
    what: 'Whether the ledger is shared, in the own database, or of each side is declared per kind',
  },
  'R-079': { where: ['ledger'], what: 'The acceptance key is unique and its transition guarded' },
  'R-080': { where: ['ledger', 'backend'], what: 'The business system sees a unique effect key as well' },

  // Idempotency
  'R-081': { where: ['receiver', 'docs'], what: 'Sending is never assumed to happen exactly once' },
  'R-082': {
    where: ['sender', 'receiver'],
    what: 'One message id per attempt; the same key with other bytes is a conflict',
  },
  'R-083': { where: ['receiver'], what: 'A resend of a decided offer gets the same decision' },
  'R-084': {
    where: ['receiver'],
    what: 'A resend that meets the first delivery joins it; one acceptance is one piece of work',
  },
  'R-085': {
    where: ['sender', 'receiver', 'docs'],
    what: 'Decisions outlive every restart; they are kept for ever, longer than any offer can be sent',
  },
  'R-086': { where: ['ledger'], what: 'Both deliveries are in the audit though one took effect' },
  'R-087': { where: ['receiver', 'ledger'], what: "A key or task id reveals nothing of another peer's" },
  'R-088': {
    where: ['sender'],
    what: 'What became of a delivery is read back before anything is sent again',
  },
  'R-089': { where: ['ledger'], what: 'An uncertain outcome is kept, and no second agent repeats it' },
  'R-090': { where: ['ledger', 'node'], what: 'A decision can be read by handoff id and by case' },
  'R-091': {
    where: ['ledger'],
    what: 'What comes too late from an earlier owner is kept as a report, and overwrites nothing',
  },
  'R-092': {
    where: ['sender', 'receiver'],
    what: 'Synchronous acceptance: a blocking send is answered with the decision',
  },
  'R-093': {
    where: ['sender', 'receiver', 'ledger', 'wire'],
    what: 'Queued acceptance: the send returns at once; the offer is followed, asked about, and decided by its deadline',
  },
  'R-094': {
    where: ['sender', 'ledger'],
    what: 'The next of several candidates is asked once the offer before is closed by proof, and none is skipped',
  },
  'R-097': {
    where: ['receiver', 'ledger'],
    what: 'An offer past its deadline is refused, and the refusal stored',
  },
  'R-095': {
    where: ['sender', 'receiver', 'ledger', 'wire'],
    what: 'An attempt is closed before the case goes elsewhere, so that its late acceptance loses',
  },
  'R-096': {
    where: ['sender', 'receiver', 'wire'],
    what: 'Time that has passed settles nothing: what came of it is unknown',
  },
  'R-099': {
    where: ['receiver', 'ledger', 'wire'],
    what: 'A withdrawal that comes after the decision changes nothing',
  },

  // Acceptance
  'R-098': {
    where: ['sender', 'ledger'],
    what: 'What no agent takes is escalated to a person; the agent owns it until that has committed',
  },
  'R-101': { where: ['receiver'], what: 'Empty evidence is refused clearly' },
  'R-102': {
    where: ['receiver', 'ledger'],
    what: 'A missing constraint prevents acceptance, and policy blocks the act all the same',
  },
  'R-103': { where: ['receiver'], what: "The receiver's own records disagree: refused with the reason" },
  'R-104': {
    where: ['sender', 'receiver'],
    what: 'Structural checks are deterministic: no order, no clock and no second look changes a verdict',
  },
  'R-105': {
    where: ['receiver', 'wire'],
    what: 'A rejection has code, reason, fields, retryable and a hint',
  },
  'R-106': { where: ['sender'], what: 'A rejection never looks like a success to the caller' },

  // Tasks
  'R-107': { where: ['receiver', 'wire'], what: "Tasks use A2A's states" },
  'R-108': { where: ['receiver'], what: 'The receiver mints the task id' },
  'R-112': {
    where: ['sender', 'receiver', 'ledger'],
    what: 'Each attempt names its artifact version; a later one erases nothing of the earlier',
  },
  'R-113': { where: ['receiver', 'wire'], what: 'The decision is in an artifact, not in a status message' },

  // Authority
  'R-127': {
    where: ['ledger', 'backend'],
    what: 'Permitted operations are held by the node, bound to the authenticated principal',
  },
  'R-128': { where: ['ledger', 'receiver'], what: 'Text that claims an approval is no credential' },

  // Push notifications
  'R-143': {
    where: ['receiver', 'wire'],
    what: 'A notification proves where it comes from, by a token that is good for one task alone',
  },
  'R-144': { where: ['receiver'], what: 'Only notifications of a task that is ours are taken' },
  'R-145': {
    where: ['receiver', 'wire'],
    what: 'A notification that comes again is answered 2xx, and does nothing more',
  },
  'R-146': {
    where: ['receiver', 'wire'],
    what: 'Id, time stamp and raw body are signed; old ones are refused, and ids are remembered',
  },
  'R-147': {
    where: ['sender', 'ledger'],
    what: 'Every notification is tried, again with growing waits, and visibly given up at last',
  },
  'R-148': {
    where: ['sender'],
    what: 'Where notifications go is guarded at registration and at every delivery',
  },
  'R-149': { where: ['receiver'], what: 'A notification leads to a read and to nothing else' },

  // Audit
  'R-133': {
    where: ['ledger', 'node'],
    what: "A person's case is acted on through their node only; a case is taken at its owner's node or at its root",
  },
  'R-137': {
    where: ['ledger', 'node'],
    what: 'A person who takes a case over is its owner at a new epoch, as after any handoff',
  },
  'R-153': {
    where: ['ledger', 'node'],
    what: 'Logs and audit hold no credential and no unneeded source content',
  },
  'R-155': {
    where: ['ledger'],
    what: 'Every decision in the audit says its cause: ids, epochs, rule, digest',
  },

  // Failure modes: each has a test that fails without its control
  'R-165': { where: ['sender', 'ledger'], what: 'Not released before acceptance' },
  'R-166': { where: ['ledger'], what: 'Never two owners, never two that act' },
  'R-167': { where: ['sender'], what: 'No context id is carried to another agent' },
  'R-168': { where: ['sender', 'receiver'], what: 'No transcript dumped into a message' },
  'R-169': { where: ['sender', 'receiver'], what: 'No fact that cannot be traced' },
  'R-170': { where: ['sender', 'receiver'], what: 'No expired reference' },
  'R-171': { where: ['receiver'], what: 'No drift between versions' },
  'R-175': { where: ['receiver'], what: 'Duplicate notifications do nothing twice' },
  'R-180': { where: ['sender'], what: 'A lost acknowledgement is found out about, not worked around' },
  'R-182': { where: ['ledger'], what: 'A stale completion overwrites nothing' },

  // Tests
  'R-188': {
    where: ['sender', 'receiver', 'ledger'],
    what: 'For each fault the state and the effects are written down before it is injected, and compared after',
  },
  'R-189': {
    where: ['sender', 'receiver', 'ledger'],
    what: 'A crash at any durable step between offer and acceptance loses nothing',
  },
  'R-190': { where: ['sender', 'receiver'], what: 'The paths of failure are played like the good one' },

  // Trade-offs
  'R-191': {
    where: ['sender', 'receiver', 'docs'],
    what: 'A thin pointer names the case alone; each side reads the system of record with its own access',
  },
  'R-192': {
    where: ['sender', 'docs'],
    what: 'Across organisations the envelope is rich; a thin one is refused there',
  },
  'R-193': {
    where: ['sender', 'docs'],
    what: 'Whether a handover waits or is queued is said for each kind of case',
  },
  'R-194': { where: ['sender', 'docs'], what: 'A structured summary comes with the transcript by reference' },
  'R-195': {
    where: ['sender', 'receiver', 'ledger'],
    what: 'Thin and rich offers go through one pipeline, under the same rules of the ledger',
  },
};
