/** Where the key comes from. Name at most one; without any, the variables `STRONGROOM_KEY_FILE`,
 * `STRONGROOM_PASSPHRASE_FILE` and `STRONGROOM_KEY_COMMAND` are asked. */
export interface KeyOptions {
  /** The key is in this file. */
  keyFile?: string;
  /** The passphrase itself. */
  passphrase?: string;
  /** The passphrase is the first line of this file. */
  passphraseFile?: string;
  /** This program, with its arguments, prints the key line. No shell reads it. */
  keyCommand?: string[];
}

export interface StoreOptions extends KeyOptions {
  /** Create the store if there is none, and its key file if there is neither. Default: false. */
  create?: boolean;
  /** The policy of a store that is created: default, strict, hipaa, pci, or a file. */
  policy?: string;
  /** Take calls of other processes while this one holds the store. Default: true. */
  serve?: boolean;
}

export interface TenantOptions {
  /** Who acts, for the audit log. */
  actor?: string;
  /** In which session, for the audit log. */
  session?: string;
  /** Told when the store failed. Default: one line to stderr. */
  onFailure?: (failure: Failure) => void;
}

/** The kind of a failure, stable across versions. */
export type Code = 'usage' | 'not_found' | 'integrity' | 'locked' | 'key' | 'no_space' | 'other';

export interface Failure {
  code: Code;
  text: string;
}

export interface ImageBlock {
  type: 'image';
  source: { type: 'base64'; media_type: 'image/png' | 'image/jpeg'; data: string };
}

/** The answer to one call: what goes into the `tool_result` block. */
export interface Answer {
  content: string | ImageBlock[];
  /** Whether the model is told that the command failed. */
  isError: boolean;
  /** The `id` of the `tool_use` block, if the input was one. */
  toolUseId?: string;
  /** Set when it was the store that failed, not the command. */
  failure?: Failure;
}

/** The store did not do its work: it is locked, its key is wrong, it is damaged, and so on. */
export declare class StrongroomError extends Error {
  readonly code: Code;
  constructor(text: string, code?: Code);
}

/**
 * An encrypted memory store with many tenants.
 *
 * Opens the store, or connects to the process that holds it. When that process ends, the next
 * call opens the store or connects to its next holder. All stores of one process in the same
 * directory are one.
 */
export declare class Store {
  private constructor();
  /** @throws {StrongroomError} */
  static open(path: string, options?: StoreOptions): Promise<Store>;
  /** The memory of one tenant: 1 to 128 of `A-Z a-z 0-9 . _ @ : -` with `/` between parts.
   * Creates nothing; the first write does. @throws {StrongroomError} */
  tenant(name: string, options?: TenantOptions): Memory;
  /** How this process has the store now. */
  readonly role: 'holder' | 'holder, not serving' | 'guest' | 'detached';
  /** The key file that `create` made, if it made one. */
  readonly newKeyFile: string | undefined;
  /** Gives the store up, with all memories it made. The process's last one closes it, once the
   * calls of other processes that are under way are done. Twice is once. */
  close(): Promise<void>;
}

/** One tenant's memory. Its work is done on other threads. */
export declare class Memory {
  private constructor();
  /** Carries out one tool input, or a whole `tool_use` block: an object, or its JSON text. Never
   * rejects for what the model sent. The answer is durable when it resolves. */
  execute(input: unknown): Promise<Answer>;
  /** Stores an image (`.png`, `.jpg`, `.jpeg`) or UTF-8 text that the host brings. */
  putBytes(path: string, data: Uint8Array): Promise<Answer>;
  /** Deletes everything below `/memories` that policy and holds let go. */
  clear(): Promise<Answer>;
}

/** Makes a key file: one random key, mode 0600, never over a file that exists. */
export declare function generateKeyFile(path: string): void;
