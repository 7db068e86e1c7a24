/** Restate: a virtual object per case, its state kept by Restate. `accept` decides once under its key; `handOff` is the whole path. */
import { createServer } from 'node:http2';
import * as restate from '@restatedev/restate-sdk';

// The SDK of Restate uses what Node.js has from 22 on.
Promise.withResolvers ??= () => {
  let settle;
  const promise = new Promise((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle };
};

const receiver = restate.object({
  name: 'receiver',
  handlers: {
    async accept(ctx, offer) {
      const key = `${offer.handoff_id}:${offer.attempt}`;
      const decided = await ctx.get(key);
      if (decided !== null) return decided;
      const held = await ctx.get('owned');
      if (held !== null && held.epoch !== offer.epoch) throw new restate.TerminalError('epoch_stale');
      const answer = {
        accepted: true,
        case_id: offer.case_id,
        epoch: offer.epoch + 1,
        receipt: 'r'.repeat(800),
      };
      ctx.set('owned', { owner: offer.to_agent, epoch: offer.epoch + 1 });
      ctx.set(key, answer);
      return answer;
    },
  },
});
const sender = restate.object({
  name: 'sender',
  handlers: {
    async handOff(ctx, offer) {
      const key = `${offer.handoff_id}:${offer.attempt}`;
      ctx.set(key, { state: 'intended', offer });
      const answer = await ctx.objectClient(receiver, ctx.key).accept(offer);
      ctx.set(key, { state: 'released', receipt: answer.receipt });
      return answer;
    },
  },
});
const server = createServer(restate.createEndpointHandler({ services: [receiver, sender] }));
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${server.address().port}\n`);
});
