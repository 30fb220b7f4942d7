// A loopback server that plays the Messages API: it hands out the scripted tool calls turn by
// turn and checks how each request pairs their results.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

export const PNG = Buffer.from('\x89PNG\r\n\x1a\n and what follows it', 'latin1');

function expanded(value) {
  if (value === null || typeof value !== 'object') return value;
  if ('repeat' in value) return value.repeat.repeat(value.times);
  return Object.fromEntries(Object.entries(value).map(([name, below]) => [name, Array.isArray(below) ? below : expanded(below)]));
}

/** The turns of the session that all adapters' tests share. */
export function session() {
  const file = new URL('../../testing/session.json', import.meta.url);
  const { turns } = JSON.parse(readFileSync(file, 'utf8'));
  return turns.map((turn) => turn.map((step) => ({ ...step, input: expanded(step.input) })));
}

/** That the model got what the session says. */
export function assertResult(step, result) {
  assert.equal(Boolean(result.is_error), 'error' in step || 'starts_error' in step, JSON.stringify([step, result]));
  let { content } = result;
  if (step.image) {
    assert.equal(content.length, 1);
    assert.equal(content[0].source.media_type, step.image);
    assert.deepEqual(Buffer.from(content[0].source.data, 'base64'), PNG);
    return;
  }
  if (Array.isArray(content)) content = content[0].text;
  const exact = step.result ?? step.error;
  if (exact !== undefined) assert.equal(content, exact);
  assert.ok(content.startsWith(step.starts ?? step.starts_error ?? ''), content);
  assert.ok(content.endsWith(step.ends ?? ''), content);
}

/** Plays `turns`, then says that it is done. What it saw is in `requests` and `results`. */
export class MessagesApi {
  requests = [];
  results = [];
  faults = [];
  #at = 0;
  #server;

  constructor(turns) {
    this.turns = turns;
  }

  async start() {
    this.#server = createServer(async (request, response) => {
      const parts = [];
      for await (const part of request) parts.push(part);
      const body = JSON.parse(Buffer.concat(parts));
      let message;
      try {
        message = this.#answer(body);
      } catch (fault) {
        this.faults.push(fault);
        response.writeHead(400, { 'content-type': 'application/json' });
        response.end('{"type":"error","error":{"type":"x","message":"fault"}}');
        return;
      }
      if (body.stream) {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        for (const data of events(message)) response.write(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`);
        response.end();
      } else {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify(message));
      }
    });
    await new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${this.#server.address().port}`;
    return this;
  }

  async stop() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(request) {
    this.requests.push(request);
    if (request.compaction) return this.#message([{ type: 'compaction', content: 'A summary.' }], 'compaction');
    if (request.thread?.type === 'continue') {
      assert.ok(!('tools' in request), 'a thread that goes on brings its tools');
      assert.equal(request.messages.length, 1);
      assert.equal(request.thread.previous_message_id, `msg_${this.requests.length - 1}`);
    } else {
      assert.ok(request.tools.some((tool) => tool.type === 'memory_20250818'));
    }
    if (this.#at > 0) {
      const asked = this.turns[this.#at - 1];
      const results = request.messages.at(-1).content.filter((block) => block.type === 'tool_result');
      assert.deepEqual(
        results.map((result) => result.tool_use_id),
        asked.map((_, at) => `toolu_${this.#at - 1}_${at}`),
      );
      this.results.push(...results);
    }
    if (this.#at === this.turns.length) return this.#message([{ type: 'text', text: 'Done.' }], 'end_turn');
    const turn = this.turns[this.#at];
    const blocks = turn.map(({ input }, at) => ({ type: 'tool_use', id: `toolu_${this.#at}_${at}`, name: 'memory', input }));
    this.#at += 1;
    return this.#message(blocks, 'tool_use');
  }

  #message(content, stop_reason) {
    return {
      id: `msg_${this.requests.length}`,
      type: 'message',
      role: 'assistant',
      model: 'claude-test',
      content,
      stop_reason,
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    };
  }

  /** That the whole script ran, and each result was as the session says. */
  check() {
    assert.deepEqual(this.faults, []);
    const steps = this.turns.flat();
    assert.equal(this.results.length, steps.length);
    steps.forEach((step, at) => assertResult(step, this.results[at]));
  }
}

function* events(message) {
  yield { type: 'message_start', message: { ...message, content: [], stop_reason: null } };
  for (const [index, block] of message.content.entries()) {
    const isTool = block.type === 'tool_use';
    yield { type: 'content_block_start', index, content_block: isTool ? { ...block, input: {} } : { ...block, text: '' } };
    const text = isTool ? JSON.stringify(block.input) : block.text;
    const middle = Math.floor(text.length / 2);
    for (const part of [text.slice(0, middle), text.slice(middle)]) {
      const delta = isTool ? { type: 'input_json_delta', partial_json: part } : { type: 'text_delta', text: part };
      yield { type: 'content_block_delta', index, delta };
    }
    yield { type: 'content_block_stop', index };
  }
  const delta = { stop_reason: message.stop_reason, stop_sequence: null };
  yield { type: 'message_delta', delta, usage: { output_tokens: 1 } };
  yield { type: 'message_stop' };
}
