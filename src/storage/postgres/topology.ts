import type pg from 'pg';
import type { Finding, Inspection } from '../care/inspection.js';

interface Settings {
  readonly version: string;
  readonly version_num: number;
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly synchronous_commit: string;
  readonly synchronous_standby_names: string;
  readonly data_checksums: string;
  readonly read_only: string;
  readonly standby: boolean;
  readonly idle_slots: number;
}

/** A standby as the primary sees it; without the right to see it, the two states are `null`. */
interface Standby {
  readonly name: string;
  readonly state: string | null;
  readonly sync_state: string | null;
}

const SETTINGS = `SELECT current_setting('server_version') AS version,
  current_setting('server_version_num')::int AS version_num,
  current_setting('fsync') AS fsync,
  current_setting('full_page_writes') AS full_page_writes,
  current_setting('synchronous_commit') AS synchronous_commit,
  current_setting('synchronous_standby_names') AS synchronous_standby_names,
  current_setting('data_checksums') AS data_checksums,
  current_setting('default_transaction_read_only') AS read_only,
  pg_is_in_recovery() AS standby,
  (SELECT count(*)::int FROM pg_replication_slots WHERE slot_type = 'physical' AND NOT active) AS idle_slots`;

/** A base backup ends with itself, and a logical subscriber is not what anybody fails over to. */
const STANDBYS = `SELECT coalesce(nullif(r.application_name, ''), 'unnamed') AS name, r.state, r.sync_state
  FROM pg_stat_replication r LEFT JOIN pg_replication_slots s ON s.active_pid = r.pid
  WHERE r.state IS DISTINCT FROM 'backup' AND s.slot_type IS DISTINCT FROM 'logical'
  ORDER BY 1`;

const OLDEST = 150_000;

/** Whether a commit stays: on this server's disk, and on the standby that takes over from it. */
export async function inspectPostgres(client: pg.ClientBase): Promise<Inspection> {
  const settings = (await client.query<Settings>(SETTINGS)).rows[0] as Settings;
  const standbys = (await client.query<Standby>(STANDBYS)).rows;
  return {
    summary: summaryOf(settings, standbys),
    findings: [...serverFindings(settings), ...standbyFindings(settings, standbys)],
  };
}

function summaryOf(settings: Settings, standbys: readonly Standby[]): string {
  const { version, fsync, full_page_writes: pages, synchronous_commit: commit } = settings;
  const listed = standbys.map(({ name, sync_state }) => `${name} ${sync_state ?? 'hidden'}`).join(', ');
  return [
    `PostgreSQL ${version.split(' ')[0]}${settings.standby ? ', a standby' : ''}: fsync ${fsync}`,
    `full_page_writes ${pages}`,
    `synchronous_commit ${commit}`,
    `checksums ${settings.data_checksums}`,
    `standbys: ${listed === '' ? 'none' : listed}`,
  ].join(', ');
}

function serverFindings(settings: Settings): Finding[] {
  const findings: Finding[] = [];
  const add = (holds: boolean, severity: Finding['severity'], code: string, message: string) => {
    if (holds) findings.push({ severity, code, message });
  };
  const off = (name: keyof Settings) => settings[name] === 'off';
  add(
    settings.version_num < OLDEST,
    'unsafe',
    'version_old',
    `PostgreSQL ${settings.version} is too old; 15 or later is needed.`,
  );
  add(
    off('fsync'),
    'unsafe',
    'fsync_off',
    'fsync is off: a crash of the machine can lose or tear the database.',
  );
  add(
    off('full_page_writes'),
    'unsafe',
    'full_page_writes_off',
    'full_page_writes is off: a crash of the machine can leave torn pages.',
  );
  add(
    off('synchronous_commit'),
    'unsafe',
    'synchronous_commit_off',
    'synchronous_commit is off for this role: a crash loses commits that were acknowledged.',
  );
  add(
    settings.standby,
    'unsafe',
    'is_standby',
    'This server is a standby: who owns a case is never read from one, and it takes no writes.',
  );
  add(
    settings.standby || settings.read_only === 'on',
    'unsafe',
    'read_only',
    'Transactions are read-only here (default_transaction_read_only, or a standby).',
  );
  add(
    off('data_checksums'),
    'warn',
    'checksums_off',
    'Data checksums are off: a page that the disk damages is not noticed.',
  );
  return findings;
}

function standbyFindings(settings: Settings, standbys: readonly Standby[]): Finding[] {
  const { synchronous_commit: commit, synchronous_standby_names: names, idle_slots: slots } = settings;
  const waits = names !== '';
  const findings: Finding[] = [];
  const add = (severity: Finding['severity'], code: string, message: string) =>
    findings.push({ severity, code, message });

  for (const { name, sync_state: state } of standbys) {
    if (waits && state === null) {
      const message = `Whether the standby ${name} is synchronous is hidden from this role; grant it pg_monitor.`;
      add('warn', 'standby_hidden', message);
    } else if (!waits || state === 'async') {
      const message = `The standby ${name} is asynchronous: were it promoted, acceptances that were answered would be gone.`;
      add('unsafe', 'standby_async', message);
    } else if (state === 'potential') {
      add(
        'warn',
        'standby_potential',
        `The standby ${name} is only a spare: commits do not wait for it yet.`,
      );
    }
  }
  if (slots > 0 && !waits) {
    const message = `${slots} standbys have a slot and are away, and synchronous_standby_names is empty: they follow asynchronously.`;
    add('unsafe', 'standby_async_configured', message);
  }
  if ((waits || standbys.length > 0) && commit === 'local') {
    const message = 'synchronous_commit is local for this role: commits do not wait for any standby.';
    add('unsafe', 'synchronous_commit_local', message);
  }
  if (waits && commit === 'remote_write') {
    const message = 'synchronous_commit is remote_write: a standby that loses its power can lose commits.';
    add('warn', 'synchronous_commit_remote_write', message);
  }
  if (waits && !standbys.some(({ sync_state }) => sync_state !== 'async')) {
    const message =
      'synchronous_standby_names names standbys and none is there: commits wait for it in vain.';
    add('warn', 'standby_missing', message);
  }
  return findings;
}
