import { isIP } from 'node:net';
import { HoldfastError } from '../core/index.js';
import { isLoopbackAddress, isPublicAddress } from './addresses.js';

/** What a node may connect to. Everything that is not named here is refused. */
export interface FetchPolicy {
  /** `host:port` on this machine that may be reached, over http too; only ever at a loopback address. */
  readonly loopback: readonly string[];
  /** Ports of public hosts; 443 by default. */
  readonly allowedPorts?: readonly number[];
  /** Host names, or `*.suffix` for any name below one; any public host where absent or `null`. */
  readonly allowHosts?: readonly string[] | null;
}

export type ForbiddenReason = 'url' | 'scheme' | 'credentials' | 'host' | 'port' | 'address' | 'redirect';

/** Names that mean this machine, its network or nothing, whatever a resolver says. */
const SPECIAL_SUFFIXES = ['localhost', 'local', 'internal', 'home.arpa', 'onion', 'invalid', 'test', 'arpa'];
const MAX_URL_LENGTH = 2048;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'https:': '443', 'http:': '80' };

export function forbidden(reason: ForbiddenReason, message: string): HoldfastError {
  return new HoldfastError('url_forbidden', message, { data: { reason } });
}

/** Host without the brackets of an IPv6 literal. */
export function bareHost(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

export function isNamedLoopback(policy: FetchPolicy, hostname: string, port: string): boolean {
  const bare = bareHost(hostname);
  return policy.loopback.some((named) => named === `${bare}:${port}` || named === `[${bare}]:${port}`);
}

/** An address is good enough for a target: public, or loopback where the configuration names the target. */
export function isPermittedAddress(address: string, named: boolean): boolean {
  return named ? isLoopbackAddress(address) : isPublicAddress(address);
}

function matchesHost(pattern: string, host: string): boolean {
  return pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) : host === pattern;
}

function checkName(policy: FetchPolicy, host: string): void {
  const special = SPECIAL_SUFFIXES.some((suffix) => host === suffix || host.endsWith(`.${suffix}`));
  if (special || !host.includes('.') || host.endsWith('.')) {
    throw forbidden('host', 'The host is not a public name.');
  }
  if (policy.allowHosts != null && !policy.allowHosts.some((pattern) => matchesHost(pattern, host))) {
    throw forbidden('host', 'The host is not one this node may connect to.');
  }
}

/**
 * Everything about a URL that can be judged without the network. The judgement is on what the URL parser made of it,
 * because that is what gets dialled: it turns `0x7f.1` into 127.0.0.1.
 *
 * @throws url_forbidden with `data.reason`
 */
export function checkUrl(policy: FetchPolicy, text: string): URL {
  // A URL is ASCII without spaces; a parser that silently drops a tab or turns a backslash must not get the chance.
  if (text.length > MAX_URL_LENGTH || !/^[\x21-\x7e]+$/.test(text) || text.includes('\\')) {
    throw forbidden('url', 'Not a URL, or too long a one.');
  }
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw forbidden('url', 'Not a URL.');
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw forbidden('scheme', 'Only https is fetched.');
  }
  if (url.username !== '' || url.password !== '') {
    throw forbidden('credentials', 'A URL must not carry credentials.');
  }
  const port = url.port || (DEFAULT_PORTS[url.protocol] as string);
  if (isNamedLoopback(policy, url.hostname, port)) return url;
  if (url.protocol !== 'https:') throw forbidden('scheme', 'Only https is fetched.');
  const host = bareHost(url.hostname);
  if (isIP(host) !== 0) {
    if (!isPublicAddress(host)) throw forbidden('address', 'The address is not a public one.');
    if (policy.allowHosts != null && !policy.allowHosts.includes(host)) {
      throw forbidden('host', 'The host is not one this node may connect to.');
    }
  } else {
    checkName(policy, host);
  }
  const ports = policy.allowedPorts ?? [443];
  if (port === '0' || !ports.includes(Number(port)))
    throw forbidden('port', 'The port is not one this node may connect to.');
  return url;
}
