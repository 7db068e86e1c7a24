import type { Command } from 'commander';
import { findEvidenceFile, storeEvidenceFile } from '../files.js';
import { counted, printTable } from '../print.js';
import { type CommonOptions, leaf, type Session } from '../run.js';

interface AddOptions extends CommonOptions {
  artifact?: string;
  mediaType?: string;
  redact?: boolean;
}

export function addEvidence(program: Command, session: Session): void {
  const group = program.command('evidence').description('bulky content that handoffs refer to');
  leaf(group, 'add <file>', 'store a file; its versions never change', [
    'evidence add transcript.txt --redact --dir triage',
    'evidence add transcript.txt --artifact transcript-7001 --dir triage',
  ])
    .option('--artifact <id>', 'add a version to this artifact (default: a new one)')
    .option('--media-type <type>', 'its media type (default: by the ending of its name)')
    .option('--redact', 'replace phone numbers, mail addresses and the like in a text before it is stored')
    .action((file: string, options: AddOptions) =>
      session.withAgent(options, async (holdfast) => {
        const found = await findEvidenceFile(file, options.mediaType);
        const { artifact, replaced } = await storeEvidenceFile(holdfast, found, {
          ...(options.artifact === undefined ? {} : { artifactId: options.artifact }),
          redact: options.redact === true,
          warn: (message) => session.warn(message),
        });
        const { artifactId, version, bytes, sha256 } = artifact;
        const redacted = replaced === null ? '' : ` Replaced ${counted(replaced, 'place')}.`;
        return {
          json: { artifact, replaced },
          text: `Stored ${artifactId} version ${version}: ${bytes} bytes, sha256 ${sha256}.${redacted}`,
        };
      }),
    );
  leaf(group, 'list', 'list what is stored', ['evidence list --dir triage']).action(
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
