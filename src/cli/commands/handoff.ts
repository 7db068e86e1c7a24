import type { Command } from 'commander';
import { type CaseRef, HoldfastError, normalizeAgentUrl } from '../../core/index.js';
import type { HandOffResult } from '../../handoff/index.js';
import type { OfferRow, SentTask } from '../../ledger/index.js';
import { type Holdfast, parseDuration, readConfig } from '../../node/index.js';
import { findCase, ROOT_OPTION } from '../cases.js';
import { PRIVACY_OPTIONS, parseArtifact, readEvidenceFile, storeEvidenceFile } from '../evidence.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { readCaseFile } from '../files.js';
import {
  describeOffer,
  openQuestion,
  reportOf,
  shortState,
  tooLate,
  withoutMessage,
} from '../handoff-report.js';
import { findOffer } from '../offers.js';
import { printTable } from '../print.js';
import { type CommonOptions, group, leaf, type Result, type Session } from '../run.js';
import { addAnswer } from './handoff-answer.js';
import { addPending } from './handoff-pending.js';
import { addQuery } from './handoff-query.js';
import { asEscalation, nowOwned, PERSON_OPTION } from './people.js';

interface SendOptions extends CommonOptions {
  file?: string;
  case?: string;
  to: string[];
  escalateTo?: string;
  queued?: boolean;
  contract: string;
  evidence?: string[];
  artifact?: string[];
  mediaType?: string;
  redact?: boolean;
  asIs?: boolean;
  acceptWithin?: string;
  root?: string;
  person?: string;
}

interface OneOffer extends CommonOptions {
  attempt?: string;
  root?: string;
  reason?: string;
  person?: string;
}

export function addHandoff(program: Command, session: Session): void {
  const commands = group(
    program,
    'handoff',
    'handing a case over to another agent',
    'handoff list --open --dir triage',
  );
  addSend(commands, session);
  addQuery(commands, session);
  addAnswer(commands, session);
  addPending(commands, session);

  offerLeaf(
    commands,
    'show',
    'show an offer: where it stands, why it was rejected, and what was kept back',
    session,
    async ({ ledger }, offer) => {
      const plan = await ledger.getPlan(offer.ref);
      const isOf = plan?.sender === offer.key.sender && plan.epoch === offer.epoch;
      return describeOffer(offer, {
        decision: await ledger.findDecision(offer.key),
        task: await ledger.getSentTask(offer.key),
        plan: isOf ? plan : null,
      });
    },
  );
  offerLeaf(
    commands,
    'resend',
    'deliver the identical bytes of an open offer again',
    session,
    async (holdfast, offer) => reportOf(await holdfast.resend(offer.key)),
  );
  offerLeaf(
    commands,
    'void',
    'close an open offer, so that a late arrival is refused',
    session,
    async (holdfast, offer, options) => {
      const result = await holdfast.voidOffer(offer.key, options.reason ?? 'voided by its sender');
      const report = reportOf(result);
      const late = tooLate(result);
      return {
        ...report,
        text: late ?? report.text,
        exit: voidedExit(result.state),
      };
    },
  ).option('--reason <text>', 'why, for the audit');
  asEscalation(
    offerLeaf(
      commands,
      'escalate',
      'give the case to a person, since its offer was rejected or is not decided; an open one is voided',
      session,
      async (holdfast, { key }, { person = '', reason = '' }) =>
        nowOwned(await holdfast.escalate({ key, person, reason })),
      ' --person ann --reason "no agent takes it"',
    ),
  );

  leaf(commands, 'list', "list this agent's offers, sent and received", [
    'handoff list --dir triage',
    'handoff list --open',
  ])
    .option('--open', 'only offers that are not decided')
    .option('--case <id>', 'only those of one case')
    .action((options: CommonOptions & { open?: boolean; case?: string }) =>
      session.withAgent(options, async ({ ledger, config, url }) => {
        const filter = {
          ...(options.open ? { open: true } : {}),
          ...(options.case === undefined ? {} : { caseId: options.case }),
        };
        const sent = await ledger.listOffers(config.tenant, { ...filter, from: url });
        const received = await ledger.listOffers(config.tenant, { ...filter, to: url });
        const offers = [...sent, ...received].sort((a, b) => (a.intendedAt < b.intendedAt ? 1 : -1));
        const tasks = await Promise.all(
          offers.map(({ key, state }) => (UNDECIDED.includes(state) ? ledger.getSentTask(key) : null)),
        );
        return {
          json: { offers: offers.map((offer, n) => ({ ...withoutMessage(offer), task: tasks[n] ?? null })) },
          text: printTable(
            ['HANDOFF', 'ATTEMPT', 'FROM', 'TO', 'CONTRACT', 'STATE', 'CODE', 'TASK'],
            offers.map(({ key, toAgent, contract, state, code }, n) => [
              key.handoffId,
              String(key.attempt),
              key.sender,
              toAgent,
              contract,
              state,
              code ?? '',
              waitsFor(tasks[n] ?? null),
            ]),
          ),
        };
      }),
    );
}

function addSend(commands: Command, session: Session): void {
  leaf(commands, 'send', 'offer a case to another agent and wait for its decision', [
    'handoff send --file case.json --to http://127.0.0.1:4200 --contract refund-dispute/1 --evidence transcript.txt --redact --dir triage',
    'handoff send --file case.json --to http://127.0.0.1:4200 --contract refund-dispute/1 --queued --accept-within 24h --dir triage',
    'handoff send --file case.json --to http://127.0.0.1:4200 --to http://127.0.0.1:4300 --escalate-to ann --contract refund-dispute/1 --dir triage',
    'handoff send --case CASE-7001 --to http://127.0.0.1:4200 --contract refund-review/1 --dir triage',
    'handoff send --file case.json --to http://127.0.0.1:4200 --contract refund-dispute/1 --artifact claim --person ann --dir triage',
  ])
    .option(
      '--file <case.json>',
      'the case file; the contract decides what of it leaves, and a thin one goes without',
    )
    .requiredOption(
      '--to <url...>',
      'the agent that is to own the case; of several, each is asked once the offer before is closed',
    )
    .option('--escalate-to <person>', 'who gets the case where no agent takes it, such as ann.meyer')
    .option(
      '--queued',
      'return as soon as the receiver has the offer; a running node of this agent sees it to its end (default: as the kind says)',
    )
    .option('--no-queued', 'wait for the decision, whatever the kind says')
    .requiredOption('--contract <id>', 'the contract, name/version')
    .option('--case <id>', 'the case (default: the one in the file)')
    .option('--evidence <file...>', 'files that the receiver is to fetch')
    .option('--artifact <id...>', 'stored evidence that the receiver is to fetch; id or id@version')
    .option('--media-type <type>', 'media type of the evidence files (default: by the ending of each name)')
    .addOption(PRIVACY_OPTIONS.redact())
    .addOption(PRIVACY_OPTIONS.asIs())
    .option(
      '--accept-within <duration>',
      'how long the receiver may take, such as 30m (default: as the kind says)',
    )
    .option(...PERSON_OPTION)
    .option(...ROOT_OPTION)
    .action((options: SendOptions) =>
      session.withAgent(options, async (holdfast) => {
        const caseFile = options.file === undefined ? undefined : await readCaseFile(options.file);
        const caseId = options.case ?? caseFile?.case_id;
        if (caseId === undefined || (caseFile === undefined && (options.evidence ?? options.artifact))) {
          throw new HoldfastError(
            'usage',
            'Without --file it is --case alone: a thin contract takes no evidence either.',
          );
        }
        const files = await Promise.all(
          (options.evidence ?? []).map((file) => readEvidenceFile(holdfast, file, options)),
        );
        const stored = (options.artifact ?? []).map((text) => parseArtifact('--artifact', text));
        const within = parseAcceptWithin(options.acceptWithin);
        const to = options.to.map((url) => normalizeAgentUrl(url));
        const ref = await findCase(holdfast, caseId, options.root);
        const waiting = await waitingFor(holdfast, ref, session.dirOf(options), options.queued);
        const input = {
          ref,
          ...(caseFile === undefined ? {} : { caseFile }),
          to,
          contract: options.contract,
          ...(options.escalateTo === undefined ? {} : { escalateTo: options.escalateTo }),
          waiting,
          ...(options.person === undefined ? {} : { person: options.person }),
          ...(within === undefined ? {} : { acceptWithinMs: within }),
        };
        // Everything that can be found wrong is looked for before the first thing is stored.
        await holdfast.checkHandOff({ ...input, evidence: stored });
        if (files.length + stored.length > 0) await holdfast.checkServing();
        const evidence = [...stored];
        for (const file of files) {
          const id = `${ref.caseId}.${file.filename}`.replace(/[^A-Za-z0-9_-]/g, '-').slice(0, 128);
          const artifact = await storeEvidenceFile(holdfast, file, id);
          evidence.push({ artifactId: artifact.artifactId, version: artifact.version });
        }
        const result = await holdfast.handOff({ ...input, evidence });
        const report = reportOf(result);
        // Queued, and the receiver has it: that is what was asked for.
        const isQueued = waiting === 'queued' && result.state === 'open' && result.problem === null;
        return isQueued ? { ...report, exit: EXIT.ok } : report;
      }),
    );
}

/** As the options say, else as this agent is configured for the kind of the case. */
async function waitingFor(
  { ledger }: Holdfast,
  ref: CaseRef,
  dir: string,
  queued: boolean | undefined,
): Promise<'blocking' | 'queued'> {
  if (queued !== undefined) return queued ? 'queued' : 'blocking';
  const kind = (await ledger.getCase(ref))?.kind;
  return (kind === undefined ? undefined : readConfig(dir).kinds[kind]?.waiting) ?? 'blocking';
}

const UNDECIDED: readonly OfferRow['state'][] = ['intended', 'offered', 'in_doubt'];

/** What the receiver has said of an open offer, and what it asks. */
function waitsFor(task: SentTask | null): string {
  const asked = openQuestion(task);
  return asked === null ? (shortState(task) ?? '') : `asks: ${asked.text.slice(0, 80)}`;
}

function voidedExit(state: HandOffResult['state']): ExitCode {
  if (state === 'withdrawn') return EXIT.ok;
  return state === 'open' ? EXIT.undecided : EXIT.refused;
}

type OfferAction = (holdfast: Holdfast, offer: OfferRow, options: OneOffer) => Promise<Result>;

function offerLeaf(
  commands: Command,
  name: string,
  summary: string,
  session: Session,
  work: OfferAction,
  more = '',
): Command {
  return leaf(commands, `${name} <handoff>`, summary, [
    `handoff ${name} CASE-7001:2${more} --dir triage`,
    `handoff ${name} CASE-7001:2 --attempt 1${more} --dir triage`,
  ])
    .option('--attempt <n>', 'which attempt (default: the last)')
    .option(...ROOT_OPTION)
    .action((handoffId: string, options: OneOffer) =>
      session.withAgent(options, async (holdfast) =>
        work(holdfast, await findOffer(holdfast, handoffId, options), options),
      ),
    );
}

function parseAcceptWithin(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = parseDuration(text);
  if (ms === null || ms < 1000)
    throw new HoldfastError('usage', '--accept-within is a duration from 1s, such as 30m.');
  return ms;
}
