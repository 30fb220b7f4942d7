// The real tool runner of `@anthropic-ai/sdk`, against a scripted Messages API.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import { betaMemoryTool } from '@anthropic-ai/sdk/helpers/beta/memory';
import { StrongroomMemory } from 'strongroom/anthropic';

import { MessagesApi, PNG, session } from './messages-api.mjs';

const require = createRequire(import.meta.url);
const ASKED = { model: 'claude-test', max_tokens: 1024, messages: [{ role: 'user', content: 'Go on.' }] };

async function withMemory(work, forms = { Anthropic, betaMemoryTool, StrongroomMemory }) {
  const home = mkdtempSync(join(tmpdir(), 'strongroom-'));
  const options = { tenant: 'clinic/ada', actor: 'agent', keyFile: join(home, 'k'), create: true };
  const memory = await forms.StrongroomMemory.open(join(home, 's'), options);
  const api = await new MessagesApi(session()).start();
  try {
    assert.equal((await memory.memory.putBytes('/memories/pixel.png', PNG)).isError, false);
    const client = new forms.Anthropic({ baseURL: api.url, apiKey: 'none', maxRetries: 0 });
    await work(client, forms.betaMemoryTool(memory.handlers), api, memory);
  } finally {
    await api.stop();
    await memory.close();
    rmSync(home, { recursive: true });
  }
}

function assertThreads(api, thread) {
  const kinds = api.requests.map((request) => request.thread?.type);
  const expected = thread ? ['create', ...api.turns.map(() => 'continue')] : kinds.map(() => undefined);
  assert.deepEqual(kinds, expected);
}

for (const thread of [true, false]) {
  const more = thread ? {} : { thread: false };
  const name = thread ? 'with threads' : 'without threads';

  test(`a session, plain, ${name}`, () =>
    withMemory(async (client, tool, api) => {
      const last = await client.beta.messages.toolRunner({ ...ASKED, ...more, tools: [tool] });
      assert.equal(last.content[0].text, 'Done.');
      assert.ok(api.results.length >= 30);
      api.check();
      assertThreads(api, thread);
    }));

  test(`a session, streaming, ${name}`, () =>
    withMemory(async (client, tool, api) => {
      let last;
      for await (const stream of client.beta.messages.toolRunner({ ...ASKED, ...more, tools: [tool], stream: true })) {
        last = await stream.finalMessage();
      }
      assert.equal(last.content[0].text, 'Done.');
      api.check();
      assertThreads(api, thread);
    }));
}

test('a session with both packages loaded by require', () =>
  withMemory(
    async (client, tool, api) => {
      await client.beta.messages.toolRunner({ ...ASKED, tools: [tool] });
      api.check();
    },
    {
      Anthropic: require('@anthropic-ai/sdk'),
      ...require('@anthropic-ai/sdk/helpers/beta/memory'),
      ...require('strongroom/anthropic'),
    },
  ));

test('all memory of one tenant is cleared, and no other', () =>
  withMemory(async (_client, _tool, _api, memory) => {
    const other = await StrongroomMemory.open(memory.store, { tenant: 'clinic/bob' });
    for (const each of [memory, other]) {
      await each.handlers.create({ command: 'create', path: '/memories/.hidden', file_text: 'x\n' });
    }
    assert.equal(await memory.clear(), 'All memory was cleared');
    const hidden = { command: 'view', path: '/memories/.hidden' };
    await assert.rejects(memory.handlers.view(hidden), { name: 'ToolError', content: /does not exist/ });
    assert.match(await other.handlers.view(hidden), /\tx$/);
    // A store that was given is not closed with the tool.
    await other.close();
    assert.equal(memory.store.role, 'holder');
    await assert.rejects(StrongroomMemory.open(memory.store, {}), /tenant/);
  }));
