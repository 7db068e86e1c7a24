import ipaddr from 'ipaddr.js';

/** The unicast part of the IPv6 space; everything outside is special use, `::/96` and NAT64 included. */
const GLOBAL_UNICAST: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('2000::'), 3];

function parse(address: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  // A zone id names an interface of this machine, never a public host.
  if (address.includes('%') || !ipaddr.isValid(address)) return null;
  return ipaddr.parse(address);
}

/** Whether an address belongs to the public internet: no private, shared, link-local, mapped, tunnelled or reserved one does. */
export function isPublicAddress(address: string): boolean {
  const parsed = parse(address);
  if (parsed === null || parsed.range() !== 'unicast') return false;
  return parsed.kind() === 'ipv4' || (parsed as ipaddr.IPv6).match(GLOBAL_UNICAST);
}

export function isLoopbackAddress(address: string): boolean {
  return parse(address)?.range() === 'loopback';
}

/** Whether two spellings are the same address; an IPv4 peer of a dual-stack socket shows up mapped. */
export function sameAddress(a: string, b: string): boolean {
  if (!ipaddr.isValid(a) || !ipaddr.isValid(b)) return false;
  return ipaddr.process(a).toNormalizedString() === ipaddr.process(b).toNormalizedString();
}
