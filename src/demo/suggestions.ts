import { basename, relative } from 'node:path';
import { AGENT_CARD_PATH } from '../protocol/index.js';
import { CASE_ID } from './fixture.js';
import type { World } from './world.js';

/** What can be tried while both nodes are up: commands that work as they stand. */
export function suggestions(world: World): string {
  const command = ownCommand();
  const [triage, billing] = [world.dirOf('triage'), world.dirOf('billing')];
  const lines = [
    ['who owns the case, and what was done about it', `${command} case show ${CASE_ID} --dir ${billing}`],
    ...(world.mode === 'shared'
      ? []
      : [["what triage's own ledger says of it", `${command} case show ${CASE_ID} --dir ${triage}`]]),
    ['what triage offered, and to whom', `${command} handoff list --dir ${triage}`],
    [
      'a late write by triage: refused',
      `${command} case note ${CASE_ID} "too late" --epoch 3 --dir ${triage}`,
    ],
    ['a write by the owner', `${command} case note ${CASE_ID} "refunded" --epoch 4 --dir ${billing}`],
    ['whether the audit of the case is whole', `${command} audit verify --dir ${billing}`],
    ["billing's Agent Card", `curl -s ${world.billingUrl}${AGENT_CARD_PATH}`],
    ['the payment in the fake payments system', `curl -s ${world.systems.url}/payments/pay_B`],
  ];
  const shown = lines.map(([what, line]) => `    # ${what}\n    ${line}`).join('\n');
  return `\n  Both agents are still up. Try, in another terminal:\n\n${shown}\n\n  Ctrl-C stops them and removes ${world.dir}.`;
}

/** How this program was started, so that a copied line starts it again. */
function ownCommand(): string {
  const script = process.argv[1] ?? '';
  if (basename(script) === 'holdfast') return 'npx holdfast';
  return basename(script) === 'holdfast.js' ? `node ${relative(process.cwd(), script)}` : 'holdfast';
}
