/** `host:port` of a URL whose host is loopback by its name or number, else `null`. */
export function loopbackAddress(url: string): string | null {
  const { hostname, port, protocol } = new URL(url);
  const loopback = hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
  return loopback ? `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}` : null;
}
