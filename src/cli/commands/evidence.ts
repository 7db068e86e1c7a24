import type { Command } from 'commander';
import { HoldfastError } from '../../core/index.js';
import type { EvidenceArtifact } from '../../evidence/index.js';
import type { Holdfast } from '../../node/index.js';
import { findEvidence, PRIVACY_OPTIONS, readEvidenceFile, storeEvidenceFile } from '../evidence.js';
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
  leaf(commands, 'list', 'list what is stored here, own and received', ['evidence list --dir triage']).action(
    (options: CommonOptions) =>
      session.withAgent(options, async ({ evidence }) => {
        const artifacts = await evidence.list();
        return {
          json: { artifacts },
          text: printTable(
            ['ARTIFACT', 'VERSION', 'FILE', 'TYPE', 'BYTES', 'SHA256'],
            artifacts.map(({ artifactId, version, filename, mediaType, bytes, sha256 }) => [
              artifactId,
              String(version),
              filename,
              mediaType,
              String(bytes),
              sha256,
            ]),
          ),
        };
      }),
  );
}

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
