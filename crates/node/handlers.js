// The tool for `@anthropic-ai/sdk`, whichever form of it is loaded: `ToolError` is a class of
// its own in each, and a runner knows only that of its own form.
'use strict';
const { Store } = require('./index.js');

module.exports = function forSdk(ToolError) {
  const text = (answer) => {
    if (answer.isError) throw new ToolError(answer.content);
    return answer.content;
  };

  return class StrongroomMemory {
    #isOwn;
    #last = Promise.resolve();

    constructor(store, memory, isOwn) {
      this.store = store;
      this.memory = memory;
      this.#isOwn = isOwn;
      // The runner starts all calls of a turn at once; the model means them in its order.
      const run = (command) => {
        const answered = this.#last.then(() => memory.execute(command));
        this.#last = answered.catch(() => undefined);
        return answered.then(text);
      };
      // Any name has a handler, so that a command which does not exist gets the store's answer too.
      this.handlers = new Proxy({}, { get: (_, name) => (typeof name === 'string' ? run : undefined) });
    }

    static async open(store, { tenant, actor, session, onFailure, ...options } = {}) {
      if (typeof tenant !== 'string') throw new TypeError('name a tenant: whose memory is it?');
      const isOwn = !(store instanceof Store);
      const opened = isOwn ? await Store.open(store, options) : store;
      try {
        return new this(opened, opened.tenant(tenant, { actor, session, onFailure }), isOwn);
      } catch (error) {
        if (isOwn) await opened.close();
        throw error;
      }
    }

    async clear() {
      return text(await this.memory.clear());
    }

    async close() {
      if (this.#isOwn) await this.store.close();
    }
  };
};
