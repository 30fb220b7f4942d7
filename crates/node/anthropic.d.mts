import type { MemoryToolHandlers } from '@anthropic-ai/sdk/helpers/beta/memory';
import type { Answer, Memory, Store, StoreOptions, TenantOptions } from './index.js';

export interface MemoryOptions extends StoreOptions, TenantOptions {
  /** Whose memory. One tenant never sees another's: name one for each end user. */
  tenant: string;
}

/**
 * Claude's memory tool for the tool runner.
 *
 * ```ts
 * const memory = await StrongroomMemory.open('./store', { tenant: `clinic/${user}`, keyFile: 'store.key' });
 * const runner = client.beta.messages.toolRunner({ ..., tools: [betaMemoryTool(memory.handlers)] });
 * ```
 */
export declare class StrongroomMemory {
  private constructor();
  /** Opens the store in a directory, or uses one that is open (then without key options). */
  static open(store: string | Store, options: MemoryOptions): Promise<StrongroomMemory>;
  readonly store: Store;
  /** The tenant's memory, for the host: `putBytes` and the like. */
  readonly memory: Memory;
  /** For `betaMemoryTool`. Calls are carried out in the order they came. What the model should read is thrown as the SDK's `ToolError`. */
  readonly handlers: MemoryToolHandlers;
  /** Deletes everything of this tenant that policy and holds let go. */
  clear(): Promise<Answer['content']>;
  /** Closes the store, unless it was given as a `Store`. */
  close(): Promise<void>;
}
