// The store without any SDK; several processes.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';

import { Store, StrongroomError, generateKeyFile } from 'strongroom';

import { PNG } from './messages-api.mjs';

const VIEW = { command: 'view', path: '/memories' };

function inHome(name, work) {
  test(name, async () => {
    const home = mkdtempSync(join(tmpdir(), 'strongroom-'));
    try {
      await work(home);
    } finally {
      rmSync(home, { recursive: true });
    }
  });
}

const open = (home) => Store.open(join(home, 's'), { keyFile: join(home, 'k'), create: true });
const create = (path, text = '') => ({ command: 'create', path, file_text: text });
const refused = (code) => (error) => error instanceof StrongroomError && error.code === code;

inHome('answers are tool results', async (home) => {
  const store = await open(home);
  const memory = store.tenant('clinic/ada', { actor: 'nurse', session: 's-1' });
  const block = { type: 'tool_use', id: 'toolu_1', name: 'memory', input: VIEW };
  assert.equal((await memory.execute(block)).toolUseId, 'toolu_1');
  assert.deepEqual(await memory.execute({ command: 'view', path: '/memories/a' }), {
    content: 'The path /memories/a does not exist. Please provide a valid path.',
    isError: true,
  });
  await memory.putBytes('/memories/p.png', PNG);
  const { content } = await memory.execute({ command: 'view', path: '/memories/p.png' });
  assert.deepEqual(Buffer.from(content[0].source.data, 'base64'), PNG);
  for (const wrong of ['no json', null, undefined, 7, { command: 'view', path: '/memories/\ud800' }]) {
    assert.equal((await memory.execute(wrong)).isError, true);
  }
  assert.equal((await memory.clear()).content, 'All memory was cleared');
  await store.close();
});

inHome('each way to name the key', async (home) => {
  const [key, words] = [join(home, 'k'), join(home, 'words')];
  generateKeyFile(key);
  writeFileSync(words, 'correct horse battery staple\n');
  chmodSync(words, 0o600);
  const ways = {
    keyFile: { keyFile: key },
    passphrase: { passphrase: 'correct horse battery staple' },
    passphraseFile: { passphraseFile: words },
    keyCommand: { keyCommand: ['cat', key] },
  };
  for (const [name, way] of Object.entries(ways)) {
    const path = join(home, name);
    await (await Store.open(path, { ...way, create: true })).close();
    const store = await Store.open(path, way);
    assert.equal((await store.tenant('a').execute(VIEW)).isError, false);
    await store.close();
    await assert.rejects(Store.open(path, { passphrase: 'wrong' }), refused('key'));
  }
  await assert.rejects(Store.open(join(home, 's'), { create: true }), (error) => {
    for (const way of ['key_file', 'passphrase,', 'passphrase_file', 'key_command']) assert.ok(error.message.includes(way));
    return refused('key')(error);
  });
  await assert.rejects(Store.open(join(home, 's'), { keyFile: 'k', passphrase: 'p' }), refused('usage'));
  assert.ok(!existsSync(join(home, 's')));
});

inHome('what is wrong has a code', async (home) => {
  generateKeyFile(join(home, 'k'));
  assert.throws(() => generateKeyFile(join(home, 'k')), refused('key'));
  await assert.rejects(Store.open(join(home, 's'), { keyFile: join(home, 'k') }), refused('not_found'));
  const store = await open(home);
  assert.throws(() => store.tenant('../x'), refused('usage'));
  const failures = [];
  const memory = store.tenant('a', { onFailure: (failure) => failures.push(failure) });
  await store.close();
  await store.close();
  const closed = await memory.execute(VIEW);
  assert.equal(closed.isError, true);
  assert.equal(failures.length, 1);
  assert.match(failures[0].text, /closed/);
  assert.ok(!closed.content.includes(home));
});

inHome('the event loop goes on while the store is opened', async (home) => {
  // The key comes from a pipe that this very event loop writes.
  generateKeyFile(join(home, 'k'));
  const script = `read line < '${join(home, 'pipe')}'; echo "$line"`;
  const place = join(home, 's');
  await (await Store.open(place, { keyCommand: ['cat', join(home, 'k')], create: true })).close();
  const made = spawn('mkfifo', [join(home, 'pipe')]);
  await new Promise((resolve) => made.on('exit', resolve));
  const opening = Store.open(place, { keyCommand: ['sh', '-c', script] });
  const writing = spawn('tee', [join(home, 'pipe')], { stdio: ['pipe', 'ignore', 'inherit'] });
  writing.stdin.end(readFileSync(join(home, 'k')));
  await (await opening).close();
});

/** A process that holds the store, or works through the one that does, and writes on a word. */
async function other(home, name, lines) {
  const program = `
    import { Store } from 'strongroom';
    const store = await Store.open('${home}/s', { keyFile: '${home}/k', create: true });
    const memory = store.tenant('a');
    await memory.execute({ command: 'view', path: '/memories' });
    console.log(store.role);
    await new Promise((resolve) => process.stdin.once('data', resolve));
    for (let line = 0; line < ${lines}; line++) {
      const command = { command: 'insert', path: '/memories/a.md', insert_line: 0, insert_text: '${name} ' + line + '\\n' };
      const answer = await memory.execute(command);
      if (answer.isError) throw new Error(answer.content);
    }
    await store.close();
    process.exit();`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    cwd: new URL('.', import.meta.url),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  const role = await new Promise((resolve) => createInterface({ input: child.stdout }).once('line', resolve));
  return { child, ended, role, go: () => child.stdin.write('go\n') };
}

inHome('two processes that write one file lose no line', async (home) => {
  const store = await open(home);
  await store.tenant('a').execute(create('/memories/a.md'));
  await store.close();
  const writers = [await other(home, 'one', 150), await other(home, 'two', 150)];
  assert.deepEqual(writers.map((writer) => writer.role), ['holder', 'guest']);
  writers.forEach((writer) => writer.go());
  assert.deepEqual(await Promise.all(writers.map((writer) => writer.ended)), [0, 0]);
  const again = await open(home);
  const { content } = await again.tenant('a').execute({ command: 'view', path: '/memories/a.md' });
  const lines = content.split('\n').slice(1).map((line) => line.split('\t')[1]);
  assert.equal(lines.length, 300);
  assert.equal(new Set(lines).size, 300);
  await again.close();
});

inHome('a guest goes on when its holder is killed', async (home) => {
  const holder = await other(home, 'holder', 0);
  const store = await open(home);
  assert.equal(store.role, 'guest');
  const memory = store.tenant('a');
  assert.equal((await memory.execute(create('/memories/a.md', 'one\n'))).isError, false);
  holder.child.kill('SIGKILL');
  await holder.ended;
  assert.match((await memory.execute({ command: 'view', path: '/memories/a.md' })).content, /\tone$/);
  assert.equal(store.role, 'holder');
  await store.close();
});

inHome('many calls at once all get their answers', async (home) => {
  const store = await open(home);
  const calls = Array.from({ length: 64 }, (_, at) => store.tenant(`t/${at % 8}`).execute(create(`/memories/${at}.md`, 'x\n')));
  for (const answer of await Promise.all(calls)) assert.equal(answer.isError, false);
  await store.close();
});
