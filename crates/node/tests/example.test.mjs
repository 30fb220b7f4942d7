// The example, against a scripted Messages API. `check` has compiled it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { MessagesApi } from './messages-api.mjs';

const AGENT = fileURLToPath(new URL('.out/agent.mjs', import.meta.url));
const TURNS = [
  [
    {
      input: { command: 'create', path: '/memories/ada.md', file_text: 'Likes tea\n' },
      result: 'File created successfully at: /memories/ada.md',
    },
    { input: { command: 'view', path: '/memories/none.md' }, starts_error: 'The path' },
  ],
  [{ input: { command: 'view', path: '/memories/ada.md' }, ends: '\tLikes tea' }],
];

for (const [edit, more] of [['clear_tool_uses_20250919', []], ['compact_20260112', ['--compact']]]) {
  test(`an agent runs to its end with ${edit}`, async () => {
    const home = mkdtempSync(join(tmpdir(), 'strongroom-'));
    const api = await new MessagesApi(TURNS).start();
    try {
      const child = spawn(process.execPath, [AGENT, '--user', 'ada', ...more, 'Who am I?'], {
        cwd: home,
        env: { ...process.env, ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: 'none' },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let said = '';
      child.stdout.on('data', (data) => (said += data));
      assert.equal(await new Promise((resolve) => child.on('close', resolve)), 0);
      assert.equal(said, 'Done.\n');
      api.check();
      assert.equal(api.requests[0].context_management.edits[0].type, edit);
    } finally {
      await api.stop();
      rmSync(home, { recursive: true });
    }
  });
}
