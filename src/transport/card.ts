import type { JsonObject } from '../core/index.js';
import { A2A_VERSION, EXTENSION_URI, JSON_RPC_PATH, REST_PATH } from '../protocol/index.js';

export interface CardOptions {
  readonly name: string;
  readonly description: string;
  /** The public base URL of the agent, as configured; never taken from a request. */
  readonly url: string;
  readonly version: string;
  readonly skills: readonly {
    readonly id: string;
    readonly name: string;
    readonly description: string;
    readonly tags: readonly string[];
    readonly inputModes: readonly string[];
  }[];
  /** What the agent reads, besides plain text. */
  readonly mediaTypes: readonly string[];
}

/** The Agent Card as the JSON that is served: required fields stand there even if they are empty. */
export function buildAgentCard(options: CardOptions): JsonObject {
  const agentInterface = (protocolBinding: string, path: string): JsonObject => ({
    url: `${options.url}${path}`,
    protocolBinding,
    protocolVersion: A2A_VERSION,
  });
  return {
    name: options.name,
    description: options.description,
    supportedInterfaces: [agentInterface('JSONRPC', JSON_RPC_PATH), agentInterface('HTTP+JSON', REST_PATH)],
    version: options.version,
    capabilities: {
      streaming: true,
      pushNotifications: true,
      extensions: [
        {
          uri: EXTENSION_URI,
          description: 'Hands over responsibility for a case, with accept-then-release.',
          required: false,
        },
      ],
      extendedAgentCard: false,
    },
    securitySchemes: {
      bearer: { httpAuthSecurityScheme: { scheme: 'Bearer', bearerFormat: 'JWT' } },
    },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    defaultInputModes: ['text/plain', ...options.mediaTypes],
    defaultOutputModes: ['text/plain', 'application/json'],
    skills: options.skills.map((skill) => ({
      id: skill.id,
      name: skill.name,
      description: skill.description,
      tags: [...skill.tags],
      inputModes: [...skill.inputModes],
    })),
  };
}
