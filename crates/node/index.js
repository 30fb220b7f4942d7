// The store without any SDK.
'use strict';
const native = require('./strongroom.node');

const KEEP_THE_KEY = 'Without this key nothing in the store can ever be read. Keep a copy elsewhere.';

class StrongroomError extends Error {
  constructor(text, code = 'other') {
    super(text);
    this.name = 'StrongroomError';
    this.code = code;
  }
}

/** The native half puts the code before the text. */
function failed(error) {
  const [code, ...text] = String(error.message).split('\n');
  return text.length > 0 ? new StrongroomError(text.join('\n'), code) : error;
}

/** Stores that are closed at the end of the process, so that they open faster next time. */
const open = new Set();
process.once('exit', () => {
  for (const store of open) {
    try {
      store.closeNow();
    } catch {
      // Nothing that was answered depends on it.
    }
  }
});

class Store {
  #native;

  constructor(token) {
    if (!(token instanceof native.NativeStore)) throw new TypeError('use Store.open(path, options)');
    this.#native = token;
  }

  static async open(path, options = {}) {
    let opened;
    try {
      opened = await native.open(String(path), options);
    } catch (error) {
      throw failed(error);
    }
    open.add(opened);
    if (opened.newKeyFile) {
      process.emitWarning(`wrote the key of a new store to ${opened.newKeyFile}. ${KEEP_THE_KEY}`, 'StrongroomWarning');
    }
    return new Store(opened);
  }

  tenant(name, { actor, session, onFailure } = {}) {
    try {
      return new Memory(this.#native.tenant(String(name), actor, session), onFailure);
    } catch (error) {
      throw failed(error);
    }
  }

  get role() {
    return this.#native.role;
  }

  get newKeyFile() {
    return this.#native.newKeyFile ?? undefined;
  }

  async close() {
    open.delete(this.#native);
    try {
      await this.#native.close();
    } catch (error) {
      throw failed(error);
    }
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.close();
  }
}

class Memory {
  #native;
  #onFailure;

  constructor(token, onFailure) {
    if (!(token instanceof native.NativeMemory)) throw new TypeError('use store.tenant(name)');
    this.#native = token;
    this.#onFailure = onFailure ?? ((failure) => console.error(`strongroom: ${failure.text} (${failure.code})`));
  }

  execute(input) {
    return this.#answer(() => this.#native.execute(typeof input === 'string' ? input : JSON.stringify(input ?? null)));
  }

  putBytes(path, data) {
    return this.#answer(() => this.#native.putBytes(String(path), Buffer.from(data)));
  }

  clear() {
    return this.#answer(() => this.#native.clear());
  }

  async #answer(call) {
    let told;
    try {
      told = await call();
    } catch (error) {
      throw failed(error);
    }
    const answer = { content: told.text ?? '', isError: told.isError };
    if (told.data) {
      const source = { type: 'base64', media_type: told.mediaType, data: told.data.toString('base64') };
      answer.content = [{ type: 'image', source }];
    }
    if (told.toolUseId) answer.toolUseId = told.toolUseId;
    if (told.failure) {
      answer.failure = { code: told.failureCode, text: told.failure };
      this.#onFailure(answer.failure);
    }
    return answer;
  }
}

function generateKeyFile(path) {
  try {
    native.generateKeyFile(String(path));
  } catch (error) {
    throw failed(error);
  }
}

module.exports = { Memory, Store, StrongroomError, generateKeyFile };
