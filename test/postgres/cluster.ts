import { execFile } from 'node:child_process';
import { chownSync, copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type pg from 'pg';
import { asServerUser, nativeFolder, serverUser } from './native.js';
import { scratchFolder } from './scratch.js';

/** Makes an empty cluster in `dataDir`, whose superuser `postgres` has this password. */
export async function initCluster(dataDir: string, folder: string, password: string): Promise<void> {
  const passwordFile = join(folder, 'password');
  give(passwordFile, () => writeFileSync(passwordFile, password, { mode: 0o600 }));
  const initdb = join(nativeFolder(scratchFolder()), 'bin/initdb');
  const [program, args] = asServerUser(
    ...[
      initdb,
      '--pgdata',
      dataDir,
      '--username=postgres',
      '--data-checksums',
      '--no-sync',
      '--no-instructions',
    ],
    ...['--auth=scram-sha-256', `--pwfile=${passwordFile}`, '--encoding=UTF8'],
    // As most servers outside are: text is not ordered by its bytes.
    ...['--locale=C', '--locale-provider=icu', '--icu-locale=en-US'],
  );
  await promisify(execFile)(program, args, { cwd: folder, timeout: 60_000 });
  rmSync(passwordFile);
}

/** What belongs to the running server and not to a copy of it. */
const NOT_COPIED = new Set(['postmaster.pid', 'postmaster.opts', 'pg_wal', 'pg_replslot', 'pg_stat_tmp']);

/** Copies a running cluster to the data folder of a standby. */
export async function copyCluster(client: pg.Client, from: string, to: string): Promise<void> {
  await client.query("SELECT pg_backup_start('standby', true)");
  copyFolder(from, to, NOT_COPIED);
  for (const folder of ['pg_wal', 'pg_replslot', 'pg_stat_tmp']) makeFolder(join(to, folder));
  const stopped = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)');
  const write = (name: string, text: string) => {
    const file = join(to, name);
    give(file, () => writeFileSync(file, text, { mode: 0o600 }));
  };
  write('backup_label', stopped.rows[0]?.labelfile ?? '');
  write('standby.signal', '');
  // What the primary was told to wait for is not the standby's to wait for once it is promoted.
  write('postgresql.auto.conf', '');
}

function copyFolder(from: string, to: string, without = new Set<string>()): void {
  makeFolder(to);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (without.has(entry.name)) continue;
    if (entry.isDirectory()) copyFolder(source, target);
    else give(target, () => copyFileSync(source, target));
  }
}

function makeFolder(path: string): void {
  give(path, () => mkdirSync(path, { mode: 0o700 }));
}

/** Makes a file or folder that is the server's. One that vanished meanwhile, as files of a running server do, is left out. */
function give(path: string, make: () => void): void {
  try {
    make();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  if (serverUser) chownSync(path, serverUser.uid, serverUser.gid);
}
