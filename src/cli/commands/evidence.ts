import type { Command } from 'commander';
import { HoldfastError } from '../../core/index.js';
import type { EvidenceArtifact } from '../../evidence/index.js';
import type { OfferState } from '../../ledger/index.js';
import type { Holdfast } from '../../node/index.js';
import {
  findEvidence,
  PRIVACY_OPTIONS,
  parseArtifact,
  readEvidenceFile,
  storeEvidenceFile,
} from '../evidence.js';
import { writeNew } from '../files.js';
import { counted, printTable } from '../print.js';
import { type CommonOptions, group, leaf, type Session } from '../run.js';

interface AddOptions extends CommonOptions {
  artifact?: string;
  mediaType?: string;
  redact?: boolean;
  asIs?: boolean;
}

export function addEvidence(program: Command, session: Session): void {
  const commands = group(
    program,
    'evidence',
    'bulky content that handoffs refer to',
    'evidence list --dir triage',
  );
  leaf(commands, 'add <file>', 'store a file; its versions never change', [
    'evidence add transcript.txt --redact --dir triage',
    'evidence add transcript.txt --artifact transcript-7001 --dir triage',
  ])
    .option('--artifact <id>', 'add a version to this artifact (default: a new one)')
    .option('--media-type <type>', 'its media type (default: by the ending of its name)')
    .addOption(PRIVACY_OPTIONS.redact())
    .addOption(PRIVACY_OPTIONS.asIs())
    .action((file: string, options: AddOptions) =>
      session.withAgent(options, async (holdfast) => {
        const read = await readEvidenceFile(holdfast, file, options);
        const artifact = await storeEvidenceFile(holdfast, read, options.artifact);
        const { artifactId, version, bytes, sha256 } = artifact;
        const redacted = read.replaced === null ? '' : ` Replaced ${counted(read.replaced, 'place')}.`;
        return {
          json: { artifact, replaced: read.replaced },
          text: `Stored ${artifactId} version ${version}: ${bytes} bytes, sha256 ${sha256}.${redacted}`,
        };
      }),
    );
  leaf(
    commands,
    'get <evidence>',
    "read evidence from this agent's store: an artifact, id@version or a SHA-256",
    [
      'evidence get CASE-7001-transcript-txt --dir triage',
      'evidence get art_5f0…@1 --out transcript.txt --dir billing',
    ],
  )
    .option('--out <file>', 'write the bytes to this new file instead of stdout')
    .action((name: string, options: CommonOptions & { out?: string }) =>
      session.withAgent(options, async (holdfast) => {
        const artifact = await findEvidence(holdfast, name);
        const content = await readAll(holdfast, artifact.sha256);
        if (options.out !== undefined) {
          writeNew(options.out, content);
          return {
            json: { artifact, file: options.out },
            text: `Wrote ${counted(content.length, 'byte')} to ${options.out}.`,
          };
        }
        if (options.json) return { json: { artifact, base64: content.toString('base64') }, text: '' };
        session.io.out(showable(artifact, content));
        return null;
      }),
    );
  addRevoke(commands, session);
  leaf(commands, 'list', 'list what is stored here, own and received', ['evidence list --dir triage']).action(
    (options: CommonOptions) =>
      session.withAgent(options, async ({ evidence }) => {
        const artifacts = await evidence.list();
        return {
          json: { artifacts },
          text: printTable(
            ['ARTIFACT', 'VERSION', 'FILE', 'TYPE', 'BYTES', 'REVOKED', 'SHA256'],
            artifacts.map(({ artifactId, version, filename, mediaType, bytes, sha256, revoked }) => [
              artifactId,
              String(version),
              filename,
              mediaType,
              String(bytes),
              revoked?.at ?? '',
              sha256,
            ]),
          ),
        };
      }),
  );
}

function addRevoke(commands: Command, session: Session): void {
  leaf(
    commands,
    'revoke <evidence>',
    'serve and offer evidence no more: an artifact, or one version as id@version',
    [
      'evidence revoke CASE-7001-transcript-txt --reason "wrong customer" --dir triage',
      'evidence revoke CASE-7001-transcript-txt@1 --reason "replaced by version 2" --dir triage',
    ],
  )
    .requiredOption('--reason <text>', 'why, in one line without personal data, for the audit')
    .action((name: string, { reason, ...options }: CommonOptions & { reason: string }) =>
      session.withAgent(options, async (holdfast) => {
        const revocation = await holdfast.revokeEvidence({ ...parseArtifact('The evidence', name), reason });
        const { artifacts, offers } = revocation;
        const lines = offers.map(
          ({ key, state, recorded }) =>
            `${key.handoffId} attempt ${key.attempt}: ${WHAT_NOW[state] ?? state}${recorded ? '' : ' (the case is quarantined: not in its audit)'}`,
        );
        const what = artifacts.map(({ artifactId, version }) => `${artifactId}@${version}`).join(', ');
        return { json: { ...revocation }, text: [`Revoked ${what}.`, ...lines].join('\n') };
      }),
    );
}

/** What a revocation means for an offer that is in this state after it. */
const WHAT_NOW: Partial<Record<OfferState, string>> = {
  rejected: 'rejected, evidence_revoked',
  accepted: 'was accepted before, and stays so; its audit tells of the revocation',
  intended: 'its receiver will not get the evidence; it decides the offer',
  offered: 'its receiver will not get the evidence, unless it has it already; it decides the offer',
  in_doubt: 'in doubt; its receiver will not get the evidence, unless it has it already',
};

async function readAll({ evidence }: Holdfast, sha256: string): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of evidence.open(sha256)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The text, unchanged; what a peer wrote must not steer a terminal. @throws usage for anything else */
function showable({ artifactId, mediaType }: EvidenceArtifact, content: Buffer): string {
  const text = content.toString('utf8');
  if (Buffer.from(text).equals(content) && !/[^\P{Cc}\t\n\r]/u.test(text)) return text;
  throw new HoldfastError(
    'usage',
    `${artifactId} (${mediaType}) is not plain text. Write it to a file with --out.`,
  );
}
