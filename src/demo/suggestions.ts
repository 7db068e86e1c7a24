import { basename, relative } from 'node:path';
import { AGENT_CARD_PATH } from '../protocol/index.js';
import { CASE_ID } from './fixture.js';
import type { World } from './world.js';

/** What can be tried while both nodes are up: commands that work as they stand. */
export function suggestions(world: World): string {
  const command = ownCommand();
  const [triage, billing] = [world.dirOf('triage'), world.dirOf('billing')];
  const root = world.ref.root;
  const lines = [
    [
      'who owns the case, and how it came to that',
      `${command} case show ${CASE_ID} --root ${root} --dir ${billing}`,
    ],
    ['what triage offered', `${command} handoff list --dir ${triage}`],
    ["whether the case's audit is whole", `${command} audit verify --dir ${billing}`],
    ["billing's Agent Card", `curl -s ${world.billingUrl}${AGENT_CARD_PATH}`],
    ['the account that the payments system keeps', `curl -s ${world.systems.url}/payments/pay_B`],
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
