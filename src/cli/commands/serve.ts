import type { Command } from 'commander';
import { HoldfastError } from '../../core/index.js';
import { type CommonOptions, leaf, type Session } from '../run.js';

interface ServeOptions extends CommonOptions {
  port?: string;
  host?: string;
}

export function addServe(program: Command, session: Session): void {
  leaf(program, 'serve', 'run the agent until it is stopped (SIGINT, SIGTERM or SIGHUP)', [
    'serve --dir billing',
    'serve --dir billing --port 4200',
  ])
    .option('--port <port>', 'listen on this port instead of listen.port; 0 takes a free one')
    .option('--host <host>', 'listen on this address instead of listen.host')
    .action((options: ServeOptions) =>
      session.withAgent(options, async (holdfast) => {
        const stopped = session.io.untilStopped();
        const { url, host, port } = await holdfast.start({
          ...(options.port === undefined ? {} : { port: parsePort(options.port) }),
          ...(options.host === undefined ? {} : { host: options.host }),
        });
        const { agent } = holdfast.config;
        const { thumbprint } = holdfast.identity;
        session.io.out(
          options.json
            ? `${JSON.stringify({ agent, url, host, port, thumbprint })}\n`
            : `${agent} serves ${url} (listening on ${host}:${port}).${session.io.interactive ? ' Ctrl-C stops it.' : ''}\n`,
        );
        await stopped;
        return null;
      }),
    );
}

function parsePort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new HoldfastError('usage', '--port is a whole number from 0 to 65535.');
}
